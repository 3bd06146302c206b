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

/* out[r] = sum over i of 2^(i r) x[i], by Horner's rule from the last row: 2^r times a number rotates it. */
TARGET static void NAME(extract)(const uint64_t *const *x, uint64_t *out, Py_ssize_t rows_in, Py_ssize_t rows_out, Py_ssize_t columns) {
    uint64_t sum[TILE];
    for (Py_ssize_t i = 0; i < columns; i += TILE) {
        Py_ssize_t width = columns - i < TILE ? columns - i : TILE;
        for (Py_ssize_t r = 0; r < rows_out; r++) {
            memcpy(sum, x[rows_in - 1] + i, (size_t)width * 8);
            for (Py_ssize_t k = rows_in - 2; k >= 0; k--)
                for (Py_ssize_t j = 0; j < width; j++) {
                    /* sum is below 2^61 + 8 and r below 32, so that this is below 2^62 + 2^33 */
                    uint64_t s = ((sum[j] << r) & P) + (sum[j] >> (61 - r)) + x[k][i + j];
                    sum[j] = (s & P) + (s >> 61);
                }
            for (Py_ssize_t j = 0; j < width; j++) out[r * columns + i + j] = sum[j] - (P & -(uint64_t)(sum[j] >= P));
        }
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
