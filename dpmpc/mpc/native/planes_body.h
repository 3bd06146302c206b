#define TRADE(a, b, j, mask)                       \
    {                                              \
        VEC swap = ((a >> j) ^ b) & (mask);     \
        b ^= swap;                                 \
        a ^= swap << j;                            \
    }

/* Three steps of the transpose of 64 rows (Hacker's Delight 7-3): rows at distance 4, 2, 1 times `stride` trade bits. */
#define THREE_STEPS(x, stride, j4, m4, j2, m2, j1, m1)                                          \
    {                                                                                           \
        VEC r0 = (x)[0], r1 = (x)[stride], r2 = (x)[2 * stride], r3 = (x)[3 * stride];       \
        VEC r4 = (x)[4 * stride], r5 = (x)[5 * stride], r6 = (x)[6 * stride], r7 = (x)[7 * stride]; \
        TRADE(r0, r4, j4, m4) TRADE(r1, r5, j4, m4) TRADE(r2, r6, j4, m4) TRADE(r3, r7, j4, m4) \
        TRADE(r0, r2, j2, m2) TRADE(r1, r3, j2, m2) TRADE(r4, r6, j2, m2) TRADE(r5, r7, j2, m2) \
        TRADE(r0, r1, j1, m1) TRADE(r2, r3, j1, m1) TRADE(r4, r5, j1, m1) TRADE(r6, r7, j1, m1) \
        (x)[0] = r0, (x)[stride] = r1, (x)[2 * stride] = r2, (x)[3 * stride] = r3;              \
        (x)[4 * stride] = r4, (x)[5 * stride] = r5, (x)[6 * stride] = r6, (x)[7 * stride] = r7; \
    }

TARGET static void NAME(transpose_block)(VEC *x, int stride) {
    for (int i = 0; i < 8; i++)
        THREE_STEPS(x + i * stride, 8 * stride, 32, 0x00000000FFFFFFFFu, 16, 0x0000FFFF0000FFFFu, 8, 0x00FF00FF00FF00FFu)
    for (int i = 0; i < 64; i += 8)
        THREE_STEPS(x + i * stride, stride, 4, 0x0F0F0F0F0F0F0F0Fu, 2, 0x3333333333333333u, 1, 0x5555555555555555u)
}

TARGET static void NAME(transpose_eight)(uint64_t *x) {
    for (int k = 0; k < 8; k += WIDTH) NAME(transpose_block)((VEC *)(x + k), 8 / WIDTH);
}

/* Planes of numbers that have few bits, and back: three steps a bit and row are fewer than the whole transpose takes. Eight
words of 64 rows, a cache line, and `PUT` words of them. */
#define FEW 3
#define EIGHT for (int i = 0; i < 8 / WIDTH; i++)
#define PUT 32
TARGET static inline void NAME(take_bits)(const uint64_t *in, const int bits, uint64_t *out, Py_ssize_t words) {
    VEC plane[FEW][8 / WIDTH] = {{{0}}};
    for (int row = 63; row >= 0; row--)
        for (int b = 0; b < bits; b++)
            EIGHT plane[b][i] = plane[b][i] << 1 | (*(const VEC *)(in + row * words + i * WIDTH) >> b & 1);
    for (int b = 0; b < bits; b++) EIGHT *(VEC *)(out + b * words + i * WIDTH) = plane[b][i];
}

TARGET static inline void NAME(put_bits)(const uint64_t *in, const int bits, uint64_t *out, Py_ssize_t words) {
    for (int row = 0; row < 64; row++)
        for (int i = 0; i < PUT; i += WIDTH) {
            VEC value = *(const VEC *)(in + i) >> row & 1;
            for (int b = 1; b < bits; b++) value |= (*(const VEC *)(in + b * words + i) >> row & 1) << b;
            *(VEC *)(out + row * words + i) = value;
        }
}

/* What of words from .. to such numbers are done of so: where the rest begins. */
TARGET static Py_ssize_t NAME(few_bits)(const uint64_t *in, Py_ssize_t rows_in, uint64_t *out, Py_ssize_t rows_out, Py_ssize_t words,
                                        Py_ssize_t from, Py_ssize_t to) {
    const Py_ssize_t bits = rows_in == 64 ? rows_out : rows_out == 64 ? rows_in : 0, step = rows_in == 64 ? 8 : PUT;
#define OF(known)                                                     \
    if (bits == known) {                                              \
        for (; to - from >= step; from += step) {                     \
            if (rows_in == 64)                                        \
                NAME(take_bits)(in + from, known, out + from, words); \
            else                                                      \
                NAME(put_bits)(in + from, known, out + from, words);  \
        }                                                             \
    }
    OF(1) OF(2) OF(3)
#undef OF
    return from;
}

/* Rows are far apart in memory, often by a power of two: they are read and written 256 bytes at a time; words
from .. to of every row. */
#define BESIDE (32 / WIDTH)
TARGET static void NAME(transpose_rows)(const uint64_t *in, Py_ssize_t rows_in, uint64_t *out, Py_ssize_t rows_out, Py_ssize_t words,
                                        Py_ssize_t from, Py_ssize_t to) {
    from = NAME(few_bits)(in, rows_in, out, rows_out, words, from, to);
    if (from == to) return;
    _Alignas(64) VEC x[64][BESIDE];
    memset(x, 0, sizeof x);
    for (Py_ssize_t at = from; at < to; at += 32) {
        Py_ssize_t left = to - at < 32 ? to - at : 32;
        for (Py_ssize_t i = 0; i < rows_in; i++) {
            if (left == 32)
                memcpy(x[i], in + i * words + at, 256);
            else
                memcpy(x[i], in + i * words + at, (size_t)left * 8);
        }
        for (Py_ssize_t i = rows_in; i < 64; i++) memset(x[i], 0, 256);
        for (int k = 0; WIDTH * k < left; k++) NAME(transpose_block)(&x[0][k], BESIDE);
        for (Py_ssize_t i = 0; i < rows_out; i++) {
            if (left == 32)
                memcpy(out + i * words + at, x[i], 256);
            else
                memcpy(out + i * words + at, x[i], (size_t)left * 8);
        }
    }
}

#undef BESIDE
#undef FEW
#undef EIGHT
#undef PUT
#undef TRADE
#undef THREE_STEPS
