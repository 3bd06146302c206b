/* Sums and differences mod p = 2^61 - 1: plain loops over a tile of columns, which the compiler turns into vectors. */

/* out[k] = the polynomial at points + 1 + k, from signed `values` at 0 and `known` (points, columns) at 1 .. points; rows of
out are `stride` words apart. */
TARGET static void NAME(continued)(const uint64_t *values, const uint64_t *known, uint64_t *out, Py_ssize_t points, Py_ssize_t rows,
                                   Py_ssize_t columns, Py_ssize_t stride) {
    uint64_t table[MOST_POINTS + 1][TILE];
    for (Py_ssize_t at = 0; at < columns; at += TILE) {
        const Py_ssize_t width = columns - at < TILE ? columns - at : TILE;
        for (Py_ssize_t j = 0; j < width; j++) {
            const uint64_t v = values[at + j];
            table[0][j] = v + (P & -(v >> 63));
        }
        for (Py_ssize_t k = 1; k <= points; k++) memcpy(table[k], known + (k - 1) * columns + at, (size_t)width * 8);
        for (Py_ssize_t order = 1; order <= points; order++) /* table[points - k]: the k-th backward difference at the end */
            for (Py_ssize_t i = 0; i + order <= points; i++)
                for (Py_ssize_t j = 0; j < width; j++) {
                    const uint64_t s = table[i + 1][j] - table[i][j];
                    table[i][j] = s + (P & -(s >> 63));
                }
        for (Py_ssize_t k = 0; k < rows; k++) {
            for (Py_ssize_t i = 1; i <= points; i++)
                for (Py_ssize_t j = 0; j < width; j++) {
                    const uint64_t less = table[i][j] + table[i - 1][j] - P;
                    table[i][j] = less + (P & -(less >> 63));
                }
            memcpy(out + k * stride + at, table[points], (size_t)width * 8);
        }
    }
}

/* out = the sum of the rows of x, of words below p. */
TARGET static void NAME(column_sums)(const uint64_t *x, uint64_t *out, Py_ssize_t rows, Py_ssize_t columns) {
    uint64_t sum[TILE];
    for (Py_ssize_t at = 0; at < columns; at += TILE) {
        const Py_ssize_t width = columns - at < TILE ? columns - at : TILE;
        memset(sum, 0, sizeof sum);
        for (Py_ssize_t k = 0; k < rows; k += AT_ONCE) {
            const Py_ssize_t end = k + AT_ONCE < rows ? k + AT_ONCE : rows;
            for (Py_ssize_t r = k; r < end; r++)
                for (Py_ssize_t j = 0; j < width; j++) sum[j] += x[r * columns + at + j];
            for (Py_ssize_t j = 0; j < width; j++) sum[j] = (sum[j] & P) + (sum[j] >> 61);
        }
        for (Py_ssize_t j = 0; j < width; j++) {
            const uint64_t less = sum[j] - P; /* of a sum below p + 8 */
            out[at + j] = less + (P & -(less >> 63));
        }
    }
}
