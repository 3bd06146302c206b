/* The kernels of mersenne.c on vectors of WIDTH numbers. "Weak" numbers are below 2^62 and stand for their residue.
LOW_PRODUCT, of the low 32 bits of each word, is what these units have; others multiply words, see mersenne.c. */

/* a * b for weak a, b: below 2^61 + 8. The four products of 32-bit halves are brought together by 2^64 = 8, 2^61 = 1. */
TARGET static inline VEC NAME(times)(VEC a, VEC b) {
    VEC a1 = a >> 32, b1 = b >> 32;
    VEC low = LOW_PRODUCT(a, b), high = LOW_PRODUCT(a1, b1);
    VEC middle = LOW_PRODUCT(a1, b) + LOW_PRODUCT(a, b1); /* below 2^63 */
    VEC sum = (high << 3) + (middle >> 29) + ((middle & LOW29) << 32) + (low & P) + (low >> 61);
    return (sum & P) + (sum >> 61);
}

/* The residue of any words. */
TARGET static inline VEC NAME(reduced)(VEC x) {
    x = (x & P) + (x >> 61);
    return x - ((VEC)(x >= P) & P);
}

TARGET static inline VEC NAME(load)(const uint64_t *from, Py_ssize_t left) {
    VEC x = {0};
    if (left >= WIDTH)
        memcpy(&x, from, sizeof x);
    else
        memcpy(&x, from, (size_t)left * 8);
    return x;
}

TARGET static inline void NAME(store)(uint64_t *to, VEC x, Py_ssize_t left) {
    if (left >= WIDTH)
        memcpy(to, &x, sizeof x);
    else
        memcpy(to, &x, (size_t)left * 8);
}

/* out[m] = scale * (sum over k of x[k][m] * y[k][m]) + add[m] + offset, rows of `columns` words; x and y may have one row for all m. */
TARGET static void NAME(dot)(const uint64_t *x, const uint64_t *y, const uint64_t *add, uint64_t *out, Py_ssize_t terms, Py_ssize_t rows,
                             Py_ssize_t columns, Py_ssize_t x_rows, Py_ssize_t y_rows, uint64_t scale, uint64_t offset) {
    const VEC factor = (VEC){0} + scale;
    for (Py_ssize_t m = 0; m < rows; m++) {
        const uint64_t *x0 = x + (x_rows > 1 ? m : 0) * columns, *y0 = y + (y_rows > 1 ? m : 0) * columns;
        for (Py_ssize_t i = 0; i < columns; i += WIDTH) {
            VEC sum = {0};
            for (Py_ssize_t k = 0; k < terms; k++) {
                VEC a = NAME(load)(x0 + k * x_rows * columns + i, columns - i);
                VEC b = NAME(load)(y0 + k * y_rows * columns + i, columns - i);
                sum += NAME(times)(a, b);
                sum = (sum & P) + (sum >> 61);
            }
            if (scale != 1) sum = NAME(times)(sum, factor);
            sum += offset;
            if (add) sum += NAME(load)(add + m * columns + i, columns - i);
            NAME(store)(out + m * columns + i, NAME(reduced)(sum), columns - i);
        }
    }
}

/* out[r] = sum over k of c[r][k] x[k]. Halves of 31 and 30 bits: four products can be added up before they are reduced.
`halves` holds 2 * terms vectors. */
TARGET static void NAME(matrix)(const uint64_t *c, const uint64_t *x, uint64_t *out, Py_ssize_t rows, Py_ssize_t terms, Py_ssize_t columns,
                                void *scratch) {
    VEC *halves = scratch;
    for (Py_ssize_t i = 0; i < columns; i += WIDTH) {
        for (Py_ssize_t k = 0; k < terms; k++) {
            VEC a = NAME(load)(x + k * columns + i, columns - i);
            halves[2 * k] = a & LOW31;
            halves[2 * k + 1] = a >> 31;
        }
        for (Py_ssize_t r = 0; r < rows; r++) {
            VEC sum = {0};
            for (Py_ssize_t k = 0; k < terms;) {
                VEC low = {0}, middle = {0}, high = {0};
                for (Py_ssize_t end = k + 4 < terms ? k + 4 : terms; k < end; k++) {
                    VEC c0 = (VEC){0} + (c[r * terms + k] & LOW31), c1 = (VEC){0} + (c[r * terms + k] >> 31);
                    low += LOW_PRODUCT(halves[2 * k], c0);
                    middle += LOW_PRODUCT(halves[2 * k + 1], c0);
                    middle += LOW_PRODUCT(halves[2 * k], c1);
                    high += LOW_PRODUCT(halves[2 * k + 1], c1);
                }
                /* low < 2^64, middle < 2^64, high < 2^62: 2^31 middle = (middle mod 2^30) 2^31 + middle >> 30, 2^62 high = 2 high */
                sum += (low & P) + (low >> 61) + ((middle & LOW30) << 31) + (middle >> 30) + ((high << 1) & P) + (high >> 60);
                sum = (sum & P) + (sum >> 61);
            }
            NAME(store)(out + r * columns + i, NAME(reduced)(sum), columns - i);
        }
    }
}

#define BESIDE 4 /* vectors side by side, for each product waits for the one before */

/* x^(2^count) y */
TARGET static inline void NAME(squares_times)(VEC *x, int count, const VEC *y) {
    for (int k = 0; k < count; k++)
        for (int v = 0; v < BESIDE; v++) x[v] = NAME(times)(x[v], x[v]);
    for (int v = 0; v < BESIDE; v++) x[v] = NAME(times)(x[v], y[v]);
}

TARGET static void NAME(inverse_root)(const uint64_t *a, uint64_t *out, Py_ssize_t count) {
    for (Py_ssize_t i = 0; i < count; i += WIDTH * BESIDE) {
        VEC base[BESIDE], x[BESIDE], y[BESIDE];
        for (int v = 0; v < BESIDE; v++) {
            Py_ssize_t left = count - i - WIDTH * v;
            base[v] = x[v] = left > 0 ? NAME(load)(a + i + WIDTH * v, left) : (VEC){0};
        }
        for (int step = 0; step < CHAIN_STEPS; step++) {
            memcpy(y, CHAIN[step] == 1 ? base : x, sizeof y);
            NAME(squares_times)(x, CHAIN[step], y);
        }
        for (int v = 0; v < BESIDE; v++) {
            Py_ssize_t left = count - i - WIDTH * v;
            if (left > 0) NAME(store)(out + i + WIDTH * v, NAME(reduced)(x[v]), left);
        }
    }
}

#undef BESIDE
#undef TARGET
#undef NAME
#undef VEC
#undef WIDTH
#undef LOW_PRODUCT
