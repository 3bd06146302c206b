/* Sums, folds and claims over GF(2^64), by one kind of unit; see gf64.c and gf64_units.h. A block's rows have eight words:
what a register holds of them is done at a time, `part` by part. */

#define INLINE TARGET static inline __attribute__((always_inline))
#define PARTS (8 / WIDTH) /* of a row */

/* Products that are added up before they are reduced, each of 128 bits. */
#define ADD(sum, a, b) (sum) ^= EVEN(a, b) ^ ODD(a, b)

/* The products of (low, high) words mod X^64 + X^4 + X^3 + X + 1. What the first step leaves above has four bits. */
#define REDUCED(low, high, over)                                  \
    over = ((high) >> 63) ^ ((high) >> 61) ^ ((high) >> 60);      \
    low ^= (high) ^ ((high) << 1) ^ ((high) << 3) ^ ((high) << 4); \
    low ^= over ^ (over << 1) ^ (over << 3) ^ (over << 4);

INLINE VEC NAME(reduced)(VEC even, VEC odd) {
    VEC low = UNPACK(lo, even, odd), high = UNPACK(hi, even, odd), over;
    REDUCED(low, high, over)
    return low;
}

INLINE uint64_t NAME(finish)(VEC sum) {
    uint64_t low = 0, high = 0, over;
    for (int i = 0; i < WIDTH; i += 2) low ^= sum[i], high ^= sum[i + 1];
    REDUCED(low, high, over)
    return low;
}

/* As many products as a register has words. */
INLINE VEC NAME(times)(VEC a, VEC b) { return NAME(reduced)(EVEN(a, b), ODD(a, b)); }

TARGET static void NAME(multiply)(const uint64_t *a, const uint64_t *b, uint64_t *out, Py_ssize_t count) {
    Py_ssize_t i = 0;
    for (; i + WIDTH <= count; i += WIDTH) *(VEC *)(out + i) = NAME(times)(*(const VEC *)(a + i), *(const VEC *)(b + i));
    if (i < count) {
        VEC x = {0}, y = {0}, z;
        memcpy(&x, a + i, (size_t)(count - i) * 8);
        memcpy(&y, b + i, (size_t)(count - i) * 8);
        z = NAME(times)(x, y);
        memcpy(out + i, &z, (size_t)(count - i) * 8);
    }
}

/* One row of a block at one node of the ternary tree, whose children are its first half, its second half, and their sum.
Of x, two of this party's components; of y, what the second one is multiplied with, and the first one. */
INLINE VEC NAME(leaf)(VEC sum, VEC x0, VEC x1, VEC y0, VEC y01, const VEC *weight) {
    if (weight) {
        VEC bits = (x0 & y01) ^ (x1 & y0);
        ADD(sum, bits, *weight);
    } else {
        ADD(sum, x0, y01);
        ADD(sum, x1, y0);
    }
    return sum;
}

/* Two rows: both, and their sum. */
INLINE void NAME(three)(VEC a0, VEC a1, VEC b0, VEC b1, VEC c0, VEC c1, VEC d0, VEC d1, const VEC *weight, VEC *sums) {
    VEC first = sums[0], second = sums[1], both = sums[2];
    first = NAME(leaf)(first, a0, b0, c0, d0, weight);
    second = NAME(leaf)(second, a1, b1, c1, d1, weight);
    both = NAME(leaf)(both, a0 ^ a1, b0 ^ b1, c0 ^ c1, d0 ^ d1, weight);
    sums[0] = first, sums[1] = second, sums[2] = both;
}

TARGET static void NAME(visit)(const VEC *x0, const VEC *x1, const VEC *y0, const VEC *y01, int v, VEC *spare, const VEC *weight, VEC *sums) {
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
    VEC *a = spare, *b = a + half, *c = b + half, *d = c + half;
    for (int r = 0; r < half; r++) {
        a[r] = x0[r] ^ x0[r + half];
        b[r] = x1[r] ^ x1[r + half];
        c[r] = y0[r] ^ y0[r + half];
        d[r] = y01[r] ^ y01[r + half];
    }
    NAME(visit)(a, b, c, d, v - 1, d + half, weight, sums + 2 * leaves);
}

/* The sum of some components of a block's rows, one part of each; zeros of none. Each is `behind` words after the last. */
INLINE void NAME(gather)(const uint64_t *from, Py_ssize_t behind, const terms *which, int count, int part, VEC *out) {
    const uint64_t *rows[MOST_COMPS];
    for (int k = 0; k < which->count; k++) rows[k] = from + which->of[k] * behind + part * WIDTH;
    if (which->count == 1)
        for (int r = 0; r < count; r++) out[r] = *(const VEC *)(rows[0] + 8 * r);
    else if (which->count == 2)
        for (int r = 0; r < count; r++) out[r] = *(const VEC *)(rows[0] + 8 * r) ^ *(const VEC *)(rows[1] + 8 * r);
    else
        for (int r = 0; r < count; r++) {
            VEC sum = {0};
            for (int k = 0; k < which->count; k++) sum ^= *(const VEC *)(rows[k] + 8 * r);
            out[r] = sum;
        }
}

/* The sums over blocks of `words` words of this party's part of x y at the points {0, 1, infinity}^v are added to `sums`;
of bits, if there are weights. Components are taken in twos: their parts are x_0 y_01 + x_1 y_0. */
TARGET static void NAME(add_sums)(const uint64_t *x, const uint64_t *y, const rights *by, Py_ssize_t behind, Py_ssize_t words, int v,
                                  const uint64_t *weights, VEC *spare, VEC *sums) {
    const int count = 1 << v;
    VEC *x0 = spare, *x1 = x0 + count, *y0 = x1 + count, *y01 = y0 + count;
    for (Py_ssize_t at = 0; at < words; at += 8 << v)
        for (int part = 0; part < PARTS; part++) {
            const VEC *weight = weights ? (const VEC *)(weights + (at >> v) + part * WIDTH) : NULL;
            for (int k = 0; k < by->comps; k += 2) {
                const terms one = {1, {k}}, next = {k + 1 < by->comps, {k + 1}};
                NAME(gather)(x + at, behind, &one, count, part, x0);
                NAME(gather)(x + at, behind, &next, count, part, x1);
                NAME(gather)(y + at, behind, &by->of[k], count, part, y01);
                NAME(gather)(y + at, behind, &by->of[k + 1], count, part, y0);
                NAME(visit)(x0, x1, y0, y01, v, y01 + count, weight, sums);
            }
        }
}

TARGET static void NAME(finish_sums)(const void *room, int points, uint64_t *out) {
    const VEC *sums = room;
    for (int p = 0; p < points; p++) out[p] = NAME(finish)(sums[p]);
}

TARGET static void NAME(sums)(const uint64_t *x, const uint64_t *y, const rights *by, Py_ssize_t words, int v, const uint64_t *weights,
                              void *spare, void *room, uint64_t *out) {
    NAME(add_sums)(x, y, by, words, words, v, weights, spare, room);
    NAME(finish_sums)(room, POWERS[v], out);
}

/* Of each block of rows, the sum of the rows times factors; in place: what a block leaves is written when it was read. */
TARGET static void NAME(fold)(uint64_t *in, const uint64_t *factors, int rows, Py_ssize_t words) {
    for (Py_ssize_t at = 0; at < words; at += 8 * rows) {
        VEC even[PARTS], odd[PARTS];
        memset(even, 0, sizeof even);
        memset(odd, 0, sizeof odd);
        for (int r = 0; r < rows; r++) {
            const VEC f = (VEC){0} + factors[r];
            for (int part = 0; part < PARTS; part++) {
                const VEC x = *(const VEC *)(in + at + 8 * r + part * WIDTH);
                even[part] ^= EVEN(x, f), odd[part] ^= ODD(x, f);
            }
        }
        for (int part = 0; part < PARTS; part++) *(VEC *)(in + at / rows + part * WIDTH) = NAME(reduced)(even[part], odd[part]);
    }
}

#define TRADE(a, b, j, mask)                   \
    {                                          \
        VEC swap = ((a >> j) ^ b) & (mask);    \
        b ^= swap;                             \
        a ^= swap << j;                        \
    }
/* Two levels of the transpose at once, on four rows that trade with each other: 2 k apart, then k. */
#define LEVELS(x, k, wide, narrow)                         \
    for (int i = 0; i < 64; i += 4 * (k))                  \
        for (int l = i; l < i + (k); l++) {                \
            VEC *p = (x) + l, *q = p + (k), *r = q + (k), *s = r + (k); \
            VEC a = *p, b = *q, c = *r, d = *s;            \
            TRADE(a, c, 2 * (k), wide)                     \
            TRADE(b, d, 2 * (k), wide)                     \
            TRADE(a, b, k, narrow)                         \
            TRADE(c, d, k, narrow)                         \
            *p = a, *q = b, *r = c, *s = d;                \
        }

/* Of a part of 64 rows of bits: for each lane l, the sum of the factors of the rows whose bit is 1, times X^l and the
column's weight, if there are weights; in place. `where[g][b]` is which of the rows 4 g .. 4 g + 3 have bit b in their
factor. The transpose is Hacker's Delight 7-3. */
TARGET static void NAME(fold_part)(uint64_t *rows, const uint8_t where[16][64], const VEC *weights) {
    _Alignas(64) VEC table[16][16], plane[64];
    for (int g = 0; g < 16; g++) {
        VEC *t = table[g];
        t[0] = (VEC){0};
        for (int k = 0; k < 4; k++) {
            const VEC row = *(const VEC *)(rows + 8 * (4 * g + k));
            for (int m = 0; m < 1 << k; m++) t[(1 << k) + m] = t[m] ^ row;
        }
    }
    for (int b = 0; b < 64; b++) {
        VEC sum = table[0][where[0][b]];
        for (int g = 1; g < 16; g++) sum ^= table[g][where[g][b]];
        plane[b] = sum;
    }
    LEVELS(plane, 16, 0x00000000FFFFFFFFu, 0x0000FFFF0000FFFFu)
    LEVELS(plane, 4, 0x00FF00FF00FF00FFu, 0x0F0F0F0F0F0F0F0Fu)
    LEVELS(plane, 1, 0x3333333333333333u, 0x5555555555555555u)
    VEC weight = weights ? *weights : (VEC){0};
    for (int l = 0; l < 64; l++) {
        *(VEC *)(rows + 8 * l) = weights ? NAME(times)(plane[l], weight) : plane[l];
        weight = (weight << 1) ^ ((VEC)((weight >> 63) != 0) & 0x1B);
    }
}

/* Folds the bits of all components of x, with weights, and of y; then adds up what comes next, at {0, 1, infinity}^v,
while it is near. */
TARGET static void NAME(fold_bits)(uint64_t *x, uint64_t *y, const rights *by, const uint8_t where[16][64], Py_ssize_t words,
                                   const uint64_t *weights, int v, void *spare, void *room) {
    for (Py_ssize_t at = 0; at < words; at += 512) {
        for (int part = 0; part < 8; part += WIDTH)
            for (int component = 0; component < by->comps; component++) {
                NAME(fold_part)(x + component * words + at + part, where, (const VEC *)(weights + at / 64 + part));
                NAME(fold_part)(y + component * words + at + part, where, NULL);
            }
        if (v >= 0) NAME(add_sums)(x + at, y + at, by, words, 512, v, NULL, spare, room);
    }
}

#undef TRADE
#undef LEVELS

/* Of each row, over all blocks: the sum of its words times their columns' weights. */
TARGET static void NAME(claim)(const uint64_t *z, const uint64_t *weights, int rows, void *room, uint64_t *out, Py_ssize_t words) {
    VEC *sums = room;
    for (Py_ssize_t at = 0; at < words; at += 8 * rows)
        for (int r = 0; r < rows; r++) {
            VEC sum = sums[r];
            for (int part = 0; part < 8; part += WIDTH)
                ADD(sum, *(const VEC *)(z + at + 8 * r + part), *(const VEC *)(weights + at / rows + part));
            sums[r] = sum;
        }
    for (int r = 0; r < rows; r++) out[r] = NAME(finish)(sums[r]);
}

/* To each of out, XORed: the sum of its row's words times their columns' weights; rows one after the other. */
TARGET static void NAME(weigh)(const uint64_t *z, const uint64_t *weights, Py_ssize_t rows, Py_ssize_t columns, uint64_t *out) {
    for (Py_ssize_t r = 0; r < rows; r++, z += columns) {
        VEC sum = {0}, x = {0}, w = {0};
        Py_ssize_t at = 0;
        for (; at + WIDTH <= columns; at += WIDTH) ADD(sum, *(const VEC *)(z + at), *(const VEC *)(weights + at));
        if (at < columns) {
            memcpy(&x, z + at, (size_t)(columns - at) * 8);
            memcpy(&w, weights + at, (size_t)(columns - at) * 8);
            ADD(sum, x, w);
        }
        out[r] ^= NAME(finish)(sum);
    }
}

#undef INLINE
#undef PARTS
#undef ADD
#undef REDUCED
#undef TARGET
#undef NAME
#undef VEC
#undef WIDTH
#undef EVEN
#undef ODD
#undef UNPACK
