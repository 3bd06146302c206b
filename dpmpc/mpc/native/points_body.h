/* The multilinear extension at {0, 1, infinity}^v, mod p = 2^61 - 1: plain loops, which the compiler turns into vectors. */

/* e (3^v, SIDE) = the extension of `width` columns from `at` on of the rows (2^v, columns); zeros behind them. The first
variable's digit is the most significant. */
TARGET static void NAME(extend)(const uint64_t *rows, uint64_t *e, int v, Py_ssize_t columns, Py_ssize_t at, Py_ssize_t width) {
    for (Py_ssize_t r = 0; r < (Py_ssize_t)1 << v; r++) {
        memcpy(e + r * SIDE, rows + r * columns + at, (size_t)width * 8);
        memset(e + r * SIDE + width, 0, (size_t)(SIDE - width) * 8);
    }
    for (Py_ssize_t before = 1, w = ((Py_ssize_t)1 << (v - 1)) * SIDE; w >= SIDE; before *= 3, w /= 2)
        for (Py_ssize_t i = before - 1; i >= 0; i--) { /* from the last on, for three blocks take the place of two */
            uint64_t *from = e + 2 * i * w, *to = e + 3 * i * w, *leading = to + 2 * w;
            for (Py_ssize_t j = 0; j < w; j += WIDTH) {
                VEC low, high;
                memcpy(&low, from + j, sizeof low);
                memcpy(&high, from + w + j, sizeof high);
                high -= low;
                high += (VEC)(high >> 63 != 0) & P;
                memcpy(leading + j, &high, sizeof high);
            }
            memmove(to + w, from + w, (size_t)w * 8);
            memmove(to, from, (size_t)w * 8);
        }
}
