/* Sums, folds and claims over GF(2^64); see gf64.c. The including file defines TARGET, NAME, and how products are made:
PRODUCTS (a type: unreduced products, added up), ADD(sum, a, b) (adds the eight products of two vectors), and
EVEN_ODD(a, b, even, odd) (the products one by one, unreduced). */

#define INLINE TARGET static inline __attribute__((always_inline))

/* The products of (low, high) words mod X^64 + X^4 + X^3 + X + 1. What the first step leaves above has four bits. */
INLINE words8 NAME(reduced)(words8 low, words8 high) {
    words8 over = (high >> 63) ^ (high >> 61) ^ (high >> 60);
    low ^= high ^ (high << 1) ^ (high << 3) ^ (high << 4);
    return low ^ over ^ (over << 1) ^ (over << 3) ^ (over << 4);
}

INLINE uint64_t NAME(finish)(PRODUCTS sum) {
    uint64_t low, high;
    NAME(close)(sum, &low, &high);
    words8 l = {low}, h = {high};
    return NAME(reduced)(l, h)[0];
}

/* Eight products. */
INLINE words8 NAME(times)(words8 a, words8 b) {
    words8 low, high;
    NAME(wide)(a, b, &low, &high);
    return NAME(reduced)(low, high);
}

TARGET static void NAME(multiply)(const uint64_t *a, const uint64_t *b, uint64_t *out, Py_ssize_t count) {
    Py_ssize_t i = 0;
    for (; i + 8 <= count; i += 8) *(words8 *)(out + i) = NAME(times)(*(const words8 *)(a + i), *(const words8 *)(b + i));
    if (i < count) {
        words8 x = {0}, y = {0}, z;
        memcpy(&x, a + i, (size_t)(count - i) * 8);
        memcpy(&y, b + i, (size_t)(count - i) * 8);
        z = NAME(times)(x, y);
        memcpy(out + i, &z, (size_t)(count - i) * 8);
    }
}

/* The rows of a block at one node of the ternary tree: of x, this party's components 0 and 1; of y, component 0, and the
sum of both. A node's children are its first half, its second half, and their sum, which is put into `spare`. */
INLINE PRODUCTS NAME(leaf)(PRODUCTS sum, words8 x0, words8 x1, words8 y0, words8 y01, const words8 *weight) {
    if (weight) {
        words8 bits = (x0 & y01) ^ (x1 & y0);
        ADD(sum, bits, *weight);
    } else {
        ADD(sum, x0, y01);
        ADD(sum, x1, y0);
    }
    return sum;
}

/* Two rows: both, and their sum. */
INLINE void NAME(three)(words8 a0, words8 a1, words8 b0, words8 b1, words8 c0, words8 c1, words8 d0, words8 d1, const words8 *weight,
                        PRODUCTS *sums) {
    PRODUCTS first = sums[0], second = sums[1], both = sums[2];
    first = NAME(leaf)(first, a0, b0, c0, d0, weight);
    second = NAME(leaf)(second, a1, b1, c1, d1, weight);
    both = NAME(leaf)(both, a0 ^ a1, b0 ^ b1, c0 ^ c1, d0 ^ d1, weight);
    sums[0] = first, sums[1] = second, sums[2] = both;
}

TARGET static void NAME(visit)(const words8 *x0, const words8 *x1, const words8 *y0, const words8 *y01, int v, words8 *spare,
                               const words8 *weight, PRODUCTS *sums) {
    if (v == 2) {
        NAME(three)(x0[0], x0[1], x1[0], x1[1], y0[0], y0[1], y01[0], y01[1], weight, sums);
        NAME(three)(x0[2], x0[3], x1[2], x1[3], y0[2], y0[3], y01[2], y01[3], weight, sums + 3);
        NAME(three)(x0[0] ^ x0[2], x0[1] ^ x0[3], x1[0] ^ x1[2], x1[1] ^ x1[3], y0[0] ^ y0[2], y0[1] ^ y0[3], y01[0] ^ y01[2],
                    y01[1] ^ y01[3], weight, sums + 6);
        return;
    }
    if (v == 1) {
        NAME(three)(x0[0], x0[1], x1[0], x1[1], y0[0], y0[1], y01[0], y01[1], weight, sums);
        return;
    }
    if (!v) {
        *sums = NAME(leaf)(*sums, *x0, *x1, *y0, *y01, weight);
        return;
    }
    const int half = 1 << (v - 1), leaves = POWERS[v - 1];
    NAME(visit)(x0, x1, y0, y01, v - 1, spare, weight, sums);
    NAME(visit)(x0 + half, x1 + half, y0 + half, y01 + half, v - 1, spare, weight, sums + leaves);
    words8 *a = spare, *b = a + half, *c = b + half, *d = c + half;
    for (int r = 0; r < half; r++) {
        a[r] = x0[r] ^ x0[r + half];
        b[r] = x1[r] ^ x1[r + half];
        c[r] = y0[r] ^ y0[r + half];
        d[r] = y01[r] ^ y01[r + half];
    }
    NAME(visit)(a, b, c, d, v - 1, d + half, weight, sums + 2 * leaves);
}

/* The sums over all blocks of this party's part of x y at the points {0, 1, infinity}^v; of bits, if there are weights.
GROUP blocks at a time, and of them the first third of the points, then the second, then the last: so that the sums under
way stay in the first cache. */
TARGET static void NAME(sums)(const uint64_t *x, const uint64_t *y, Py_ssize_t words, int v, const uint64_t *weights, words8 *spare,
                              void *room, uint64_t *out) {
    PRODUCTS *sums = room;
    const int rows = 1 << v, half = rows / 2;
    const Py_ssize_t block = 8 * rows;
    words8 *y01 = spare, *rest = spare + GROUP * rows;
    for (int p = 0; p < POWERS[v]; p++) sums[p] = NAME(nothing)();
    for (Py_ssize_t at = 0; at < words; at += GROUP * block) {
        const int blocks = words - at < GROUP * block ? (int)((words - at) / block) : GROUP;
        const words8 *x0 = (const words8 *)(x + at), *x1 = (const words8 *)(x + words + at);
        const words8 *y0 = (const words8 *)(y + at), *y1 = (const words8 *)(y + words + at);
        for (int r = 0; r < blocks * rows; r++) y01[r] = y0[r] ^ y1[r];
        for (int third = 0; third < (v ? 3 : 1); third++)
            for (int b = 0; b < blocks; b++) {
                const words8 *weight = weights ? (const words8 *)(weights + at / rows) + b : NULL;
                const int from = b * rows + (third == 1 ? half : 0);
                if (!v) {
                    *sums = NAME(leaf)(*sums, x0[from], x1[from], y0[from], y01[from], weight);
                    continue;
                }
                if (third < 2) {
                    NAME(visit)(x0 + from, x1 + from, y0 + from, y01 + from, v - 1, rest, weight, sums + third * POWERS[v - 1]);
                    continue;
                }
                words8 *p = rest, *q = p + half, *s = q + half, *t = s + half;
                for (int r = 0; r < half; r++) {
                    p[r] = x0[from + r] ^ x0[from + r + half];
                    q[r] = x1[from + r] ^ x1[from + r + half];
                    s[r] = y0[from + r] ^ y0[from + r + half];
                    t[r] = y01[from + r] ^ y01[from + r + half];
                }
                NAME(visit)(p, q, s, t, v - 1, t + half, weight, sums + 2 * POWERS[v - 1]);
            }
    }
    for (int p = 0; p < POWERS[v]; p++) out[p] = NAME(finish)(sums[p]);
}

/* Of each block of rows, the sum of the rows times factors; in place: what a block leaves is written when it was read. */
TARGET static void NAME(fold)(uint64_t *in, const uint64_t *factors, int rows, Py_ssize_t words) {
    for (Py_ssize_t at = 0; at < words; at += 8 * rows) {
        words8 low = {0}, high = {0}, l, h;
        for (int r = 0; r < rows; r++) {
            words8 f = (words8){0} + factors[r];
            NAME(wide)(*(const words8 *)(in + at + 8 * r), f, &l, &h);
            low ^= l, high ^= h;
        }
        *(words8 *)(in + at / rows) = NAME(reduced)(low, high);
    }
}

#define TRADE(a, b, j, mask)                   \
    {                                          \
        words8 swap = ((a >> j) ^ b) & (mask); \
        b ^= swap;                             \
        a ^= swap << j;                        \
    }
/* Two levels of the transpose at once, on four rows that trade with each other: 2 k apart, then k. */
#define LEVELS(x, k, wide, narrow)                         \
    for (int i = 0; i < 64; i += 4 * (k))                  \
        for (int l = i; l < i + (k); l++) {                \
            words8 *p = (x) + l, *q = p + (k), *r = q + (k), *s = r + (k); \
            words8 a = *p, b = *q, c = *r, d = *s;         \
            TRADE(a, c, 2 * (k), wide)                     \
            TRADE(b, d, 2 * (k), wide)                     \
            TRADE(a, b, k, narrow)                         \
            TRADE(c, d, k, narrow)                         \
            *p = a, *q = b, *r = c, *s = d;                \
        }

/* Of each block of 64 rows of bits: for each lane l, the sum of the factors of the rows whose bit is 1, times X^l and the
column's weight, if there are weights; in place. `where[g][b]` is which of the rows 4 g .. 4 g + 3 have bit b in their
factor. The transpose is Hacker's Delight 7-3. */
TARGET static void NAME(fold_bits)(uint64_t *words, const uint8_t where[16][64], Py_ssize_t count, const uint64_t *weights) {
    words8 table[16][16], plane[64];
    for (Py_ssize_t at = 0; at < count; at += 512) {
        words8 *block = (words8 *)(words + at);
        for (int g = 0; g < 16; g++) {
            words8 *t = table[g];
            t[0] = (words8){0};
            for (int k = 0; k < 4; k++)
                for (int m = 0; m < 1 << k; m++) t[(1 << k) + m] = t[m] ^ block[4 * g + k];
        }
        for (int b = 0; b < 64; b++) {
            words8 sum = table[0][where[0][b]];
            for (int g = 1; g < 16; g++) sum ^= table[g][where[g][b]];
            plane[b] = sum;
        }
        LEVELS(plane, 16, 0x00000000FFFFFFFFu, 0x0000FFFF0000FFFFu)
        LEVELS(plane, 4, 0x00FF00FF00FF00FFu, 0x0F0F0F0F0F0F0F0Fu)
        LEVELS(plane, 1, 0x3333333333333333u, 0x5555555555555555u)
        if (weights) {
            words8 weight = *(const words8 *)(weights + at / 64);
            for (int l = 0; l < 64; l++) {
                plane[l] = NAME(times)(plane[l], weight);
                weight = (weight << 1) ^ ((weight >> 63) * 0x1B);
            }
        }
        memcpy(block, plane, sizeof plane);
    }
}

#undef TRADE
#undef LEVELS

/* Of each row, over all blocks: the sum of its words times their columns' weights. */
TARGET static void NAME(claim)(const uint64_t *z, const uint64_t *weights, int rows, void *room, uint64_t *out, Py_ssize_t words) {
    PRODUCTS *sums = room;
    for (int r = 0; r < rows; r++) sums[r] = NAME(nothing)();
    for (Py_ssize_t at = 0; at < words; at += 8 * rows)
        for (int r = 0; r < rows; r++) {
            PRODUCTS sum = sums[r];
            ADD(sum, *(const words8 *)(z + at + 8 * r), *(const words8 *)(weights + at / rows));
            sums[r] = sum;
        }
    for (int r = 0; r < rows; r++) out[r] = NAME(finish)(sums[r]);
}

#undef INLINE
#undef TARGET
#undef NAME
#undef PRODUCTS
#undef ADD
