/* The kernels of mersenne.c on AVX-512, eight numbers at a time. "Weak" numbers are below 2^62 and stand for their
residue. Products of 32-bit halves are what these units have; other processors multiply words, see mersenne.c. */

#define AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))

/* Products of the low 32 bits of each word. */
AVX512 static inline words8 low_product(words8 a, words8 b) { return (words8)_mm512_mul_epu32((__m512i)a, (__m512i)b); }

/* a * b for weak a, b: below 2^61 + 8. The four products of 32-bit halves are brought together by 2^64 = 8, 2^61 = 1. */
AVX512 static inline words8 times_avx512(words8 a, words8 b) {
    words8 a1 = a >> 32, b1 = b >> 32;
    words8 low = low_product(a, b), high = low_product(a1, b1);
    words8 middle = low_product(a1, b) + low_product(a, b1); /* below 2^63 */
    words8 sum = (high << 3) + (middle >> 29) + ((middle & LOW29) << 32) + (low & P) + (low >> 61);
    return (sum & P) + (sum >> 61);
}

/* The residue of any eight words. */
AVX512 static inline words8 reduced_avx512(words8 x) {
    x = (x & P) + (x >> 61);
    return x - ((words8)(x >= P) & P);
}

AVX512 static inline words8 load_avx512(const uint64_t *from, Py_ssize_t left) {
    words8 x = {0};
    if (left >= 8)
        memcpy(&x, from, 64);
    else
        memcpy(&x, from, (size_t)left * 8);
    return x;
}

AVX512 static inline void store_avx512(uint64_t *to, words8 x, Py_ssize_t left) {
    if (left >= 8)
        memcpy(to, &x, 64);
    else
        memcpy(to, &x, (size_t)left * 8);
}

/* out[m] = scale * (sum over k of x[k][m] * y[k][m]) + add[m] + offset, rows of `columns` words; x and y may have one row for all m. */
AVX512 static void dot_avx512(const uint64_t *x, const uint64_t *y, const uint64_t *add, uint64_t *out, Py_ssize_t terms, Py_ssize_t rows,
                             Py_ssize_t columns, Py_ssize_t x_rows, Py_ssize_t y_rows, uint64_t scale, uint64_t offset) {
    const words8 factor = (words8){0} + scale;
    for (Py_ssize_t m = 0; m < rows; m++) {
        const uint64_t *x0 = x + (x_rows > 1 ? m : 0) * columns, *y0 = y + (y_rows > 1 ? m : 0) * columns;
        for (Py_ssize_t i = 0; i < columns; i += 8) {
            words8 sum = {0};
            for (Py_ssize_t k = 0; k < terms; k++) {
                words8 a = load_avx512(x0 + k * x_rows * columns + i, columns - i);
                words8 b = load_avx512(y0 + k * y_rows * columns + i, columns - i);
                sum += times_avx512(a, b);
                sum = (sum & P) + (sum >> 61);
            }
            if (scale != 1) sum = times_avx512(sum, factor);
            sum += offset;
            if (add) sum += load_avx512(add + m * columns + i, columns - i);
            store_avx512(out + m * columns + i, reduced_avx512(sum), columns - i);
        }
    }
}

/* out[r] = sum over k of c[r][k] x[k]. Halves of 31 and 30 bits: four products can be added up before they are reduced.
`halves` holds 2 * terms vectors. */
AVX512 static void matrix_avx512(const uint64_t *c, const uint64_t *x, uint64_t *out, Py_ssize_t rows, Py_ssize_t terms, Py_ssize_t columns,
                                void *scratch) {
    words8 *halves = scratch;
    for (Py_ssize_t i = 0; i < columns; i += 8) {
        for (Py_ssize_t k = 0; k < terms; k++) {
            words8 a = load_avx512(x + k * columns + i, columns - i);
            halves[2 * k] = a & LOW31;
            halves[2 * k + 1] = a >> 31;
        }
        for (Py_ssize_t r = 0; r < rows; r++) {
            words8 sum = {0};
            for (Py_ssize_t k = 0; k < terms;) {
                words8 low = {0}, middle = {0}, high = {0};
                for (Py_ssize_t end = k + 4 < terms ? k + 4 : terms; k < end; k++) {
                    words8 c0 = (words8){0} + (c[r * terms + k] & LOW31), c1 = (words8){0} + (c[r * terms + k] >> 31);
                    low += low_product(halves[2 * k], c0);
                    middle += low_product(halves[2 * k + 1], c0);
                    middle += low_product(halves[2 * k], c1);
                    high += low_product(halves[2 * k + 1], c1);
                }
                /* low < 2^64, middle < 2^64, high < 2^62: 2^31 middle = (middle mod 2^30) 2^31 + middle >> 30, 2^62 high = 2 high */
                sum += (low & P) + (low >> 61) + ((middle & LOW30) << 31) + (middle >> 30) + ((high << 1) & P) + (high >> 60);
                sum = (sum & P) + (sum >> 61);
            }
            store_avx512(out + r * columns + i, reduced_avx512(sum), columns - i);
        }
    }
}

#define BESIDE 4 /* vectors side by side, for each product waits for the one before */

/* x^(2^count) y */
AVX512 static inline void squares_times_avx512(words8 *x, int count, const words8 *y) {
    for (int k = 0; k < count; k++)
        for (int v = 0; v < BESIDE; v++) x[v] = times_avx512(x[v], x[v]);
    for (int v = 0; v < BESIDE; v++) x[v] = times_avx512(x[v], y[v]);
}

AVX512 static void inverse_root_avx512(const uint64_t *a, uint64_t *out, Py_ssize_t count) {
    for (Py_ssize_t i = 0; i < count; i += 8 * BESIDE) {
        words8 base[BESIDE], x[BESIDE], y[BESIDE];
        for (int v = 0; v < BESIDE; v++) {
            Py_ssize_t left = count - i - 8 * v;
            base[v] = x[v] = left > 0 ? load_avx512(a + i + 8 * v, left) : (words8){0};
        }
        for (int step = 0; step < CHAIN_STEPS; step++) {
            memcpy(y, CHAIN[step] == 1 ? base : x, sizeof y);
            squares_times_avx512(x, CHAIN[step], y);
        }
        for (int v = 0; v < BESIDE; v++) {
            Py_ssize_t left = count - i - 8 * v;
            if (left > 0) store_avx512(out + i + 8 * v, reduced_avx512(x[v]), left);
        }
    }
}

#undef BESIDE
#undef AVX512
