/* Sums and rotations mod p = 2^61 - 1: plain loops over a tile of columns, which the compiler turns into vectors. */

/* out = the sum of the rows of x. */
TARGET static void NAME(total)(const uint64_t *const *x, uint64_t *out, Py_ssize_t rows, Py_ssize_t columns) {
    uint64_t sum[TILE];
    for (Py_ssize_t i = 0; i < columns; i += TILE) {
        Py_ssize_t width = columns - i < TILE ? columns - i : TILE;
        memset(sum, 0, sizeof sum);
        for (Py_ssize_t k = 0; k < rows; k++)
            for (Py_ssize_t j = 0; j < width; j++) {
                uint64_t s = sum[j] + x[k][i + j];
                sum[j] = (s & P) + (s >> 61);
            }
        for (Py_ssize_t j = 0; j < width; j++) out[i + j] = sum[j] - (P & -(uint64_t)(sum[j] >= P));
    }
}

/* Columns i .. i + n WIDTH - 1 of the row r of an extraction, in registers. */
TARGET static inline __attribute__((always_inline)) void NAME(extract_piece)(const uint64_t *const *x, uint64_t *out, Py_ssize_t rows_in,
                                                                             uint64_t r, Py_ssize_t i, const int n) {
    VEC sum[8];
    for (int j = 0; j < n; j++) sum[j] = *(const VEC *)(x[rows_in - 1] + i + j * WIDTH);
    for (Py_ssize_t k = rows_in - 2; k >= 0; k--)
        for (int j = 0; j < n; j++) {
            /* sum is below 2^61 + 8 and r below 32, so that this is below 2^62 + 2^33 */
            VEC s = ((sum[j] << r) & P) + (sum[j] >> (61 - r)) + *(const VEC *)(x[k] + i + j * WIDTH);
            sum[j] = (s & P) + (s >> 61);
        }
    for (int j = 0; j < n; j++) {
        VEC less = sum[j] - P;
        *(VEC *)(out + i + j * WIDTH) = less + (P & -(less >> 63));
    }
}

/* out[r] = sum over i of 2^(i r) x[i], by Horner's rule from the last row: 2^r times a number rotates it. */
TARGET static void NAME(extract)(const uint64_t *const *x, uint64_t *out, Py_ssize_t rows_in, Py_ssize_t rows_out, Py_ssize_t columns) {
    Py_ssize_t i = 0;
    for (; i + 8 * WIDTH <= columns; i += 8 * WIDTH)
        for (Py_ssize_t r = 0; r < rows_out; r++) NAME(extract_piece)(x, out + r * columns, rows_in, (uint64_t)r, i, 8);
    for (; i + WIDTH <= columns; i += WIDTH)
        for (Py_ssize_t r = 0; r < rows_out; r++) NAME(extract_piece)(x, out + r * columns, rows_in, (uint64_t)r, i, 1);
    for (; i < columns; i++)
        for (Py_ssize_t r = 0; r < rows_out; r++) {
            uint64_t sum = x[rows_in - 1][i];
            for (Py_ssize_t k = rows_in - 2; k >= 0; k--) {
                uint64_t s = ((sum << r) & P) + (sum >> (61 - r)) + x[k][i];
                sum = (s & P) + (s >> 61);
            }
            out[r * columns + i] = sum - (P & -(uint64_t)(sum >= P));
        }
}

/* x = the low 61 bits of x; whether any of them is p. */
TARGET static int NAME(cut)(uint64_t *x, Py_ssize_t count) {
    uint64_t found = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        x[i] &= P;
        found |= -(uint64_t)(x[i] == P);
    }
    return found != 0;
}
