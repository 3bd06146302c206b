/* Sums, folds and claims over GF(2^64), by one kind of unit; see gf64.c and gf64_units.h. A block's rows have eight words:
what a register holds of them is done at a time, `part` by part. */

#define INLINE TARGET static inline __attribute__((always_inline))
#define PARTS (8 / WIDTH) /* of a row */

/* Products that are added up before they are reduced, each of 128 bits. */
#define ADD(sum, a, b) (sum) ^= EVEN(a, b) ^ ODD(a, b)

/* The products of (low, high) words mod X^64 + X^4 + X^3 + X + 1, where X^4 + X^3 + X + 1 = (X + 1) (X^3 + 1). The high word
times that has four bits above: these are to be multiplied by it, too, so they are added to the high word first. */
#define REDUCED(low, high)                                \
    high ^= ((high) >> 63) ^ ((high) >> 61) ^ ((high) >> 60); \
    high ^= (high) << 1;                                  \
    low ^= (high) ^ ((high) << 3);

INLINE VEC NAME(reduced)(VEC even, VEC odd) {
    VEC low = UNPACK(lo, even, odd), high = UNPACK(hi, even, odd);
    REDUCED(low, high)
    return low;
}

INLINE uint64_t NAME(finish)(VEC sum) {
    uint64_t low = 0, high = 0;
    for (int i = 0; i < WIDTH; i += 2) low ^= sum[i], high ^= sum[i + 1];
    REDUCED(low, high)
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

/* A row; or, of both, its sum with the one `behind` it. */
INLINE VEC NAME(row)(const uint64_t *at, const int both, Py_ssize_t behind) {
    VEC found = *(const VEC *)at;
    if (both) found ^= *(const VEC *)(at + behind);
    return found;
}

#define ROW(k, r) NAME(row)(p->of[k] + (r), both, behind)
#define ROWS(r) {ROW(0, r), ROW(1, r), ROW(2, r), ROW(3, r)}
#define LEAF(sum, r) sum = NAME(leaf)(sum, r[0], r[1], r[2], r[3], weight)
#define SUM(r, s) {r[0] ^ s[0], r[1] ^ s[1], r[2] ^ s[2], r[3] ^ s[3]}

/* Of the only row. */
INLINE void NAME(one)(const node *p, int blocks, const uint64_t *weights, VEC *sums) {
    for (int block = 0; block < blocks; block++) {
        const VEC *weight = weights ? (const VEC *)(weights + 8 * block) : NULL;
        const Py_ssize_t behind = 0, both = 0;
        const VEC r[4] = ROWS(block * p->gap);
        LEAF(*sums, r);
    }
}

/* Of two rows next to each other: both, and their sum; added up over blocks in registers. */
INLINE void NAME(three)(const node *p, Py_ssize_t row, const int both, Py_ssize_t behind, int blocks, const uint64_t *weights, VEC *sums) {
    VEC s0 = sums[0], s1 = sums[1], s2 = sums[2];
    for (int block = 0; block < blocks; block++, row += p->gap) {
        const VEC *weight = weights ? (const VEC *)(weights + 8 * block) : NULL;
        const VEC r0[4] = ROWS(row), r1[4] = ROWS(row + p->next), r2[4] = SUM(r0, r1);
        LEAF(s0, r0), LEAF(s1, r1), LEAF(s2, r2);
    }
    sums[0] = s0, sums[1] = s1, sums[2] = s2;
}

/* The same of four rows: nine points. */
#if WIDTH == 8 /* 32 registers hold them all */
INLINE void NAME(nine)(const node *p, Py_ssize_t row, const int both, Py_ssize_t behind, int blocks, const uint64_t *weights, VEC *sums) {
    const Py_ssize_t next = p->next;
    VEC s[9];
    for (int i = 0; i < 9; i++) s[i] = sums[i];
    for (int block = 0; block < blocks; block++, row += p->gap) {
        const VEC *weight = weights ? (const VEC *)(weights + 8 * block) : NULL;
        const VEC r0[4] = ROWS(row), r1[4] = ROWS(row + next), r2[4] = ROWS(row + 2 * next), r3[4] = ROWS(row + 3 * next);
        const VEC r01[4] = SUM(r0, r1), r23[4] = SUM(r2, r3), r02[4] = SUM(r0, r2), r13[4] = SUM(r1, r3), all[4] = SUM(r02, r13);
        LEAF(s[0], r0), LEAF(s[1], r1), LEAF(s[2], r01), LEAF(s[3], r2), LEAF(s[4], r3), LEAF(s[5], r23);
        LEAF(s[6], r02), LEAF(s[7], r13), LEAF(s[8], all);
    }
    for (int i = 0; i < 9; i++) sums[i] = s[i];
}
#else
INLINE void NAME(nine)(const node *p, Py_ssize_t row, const int both, Py_ssize_t behind, int blocks, const uint64_t *weights, VEC *sums) {
    const Py_ssize_t next = p->next;
    for (int third = 0; third < 2; third++) NAME(three)(p, row + 2 * third * next, both, behind, blocks, weights, sums + 3 * third);
    VEC s0 = sums[6], s1 = sums[7], s2 = sums[8];
    for (int block = 0; block < blocks; block++, row += p->gap) {
        const VEC *weight = weights ? (const VEC *)(weights + 8 * block) : NULL;
        const VEC r0[4] = ROWS(row), r1[4] = ROWS(row + next), r2[4] = ROWS(row + 2 * next), r3[4] = ROWS(row + 3 * next);
        const VEC r02[4] = SUM(r0, r2), r13[4] = SUM(r1, r3), all[4] = SUM(r02, r13);
        LEAF(s0, r02), LEAF(s1, r13), LEAF(s2, all);
    }
    sums[6] = s0, sums[7] = s1, sums[8] = s2;
}
#endif

/* At most eight rows: what registers hold needs no memory. */
INLINE void NAME(few)(const node *p, int v, int blocks, const uint64_t *weights, VEC *sums) {
    if (v == 3) {
        NAME(nine)(p, 0, 0, 0, blocks, weights, sums);
        NAME(nine)(p, 4 * p->next, 0, 0, blocks, weights, sums + 9);
        NAME(nine)(p, 0, 1, 4 * p->next, blocks, weights, sums + 18);
    } else if (v == 2)
        NAME(nine)(p, 0, 0, 0, blocks, weights, sums);
    else if (v == 1)
        NAME(three)(p, 0, 0, 0, blocks, weights, sums);
    else
        NAME(one)(p, blocks, weights, sums);
}

/* The points below a node of 2^v rows, of all blocks: what is put into `spare` lies near. */
TARGET static void NAME(visit)(const node *p, int v, int blocks, uint64_t *spare, const uint64_t *weights, VEC *sums) {
    if (v <= 3 && weights) return NAME(few)(p, v, blocks, weights, sums);
    if (v <= 3) return NAME(few)(p, v, blocks, NULL, sums);
    const Py_ssize_t next = p->next, half = (Py_ssize_t)1 << (v - 1), behind = half * next, leaves = POWERS[v - 1];
    const int both = 1;
    node part = *p;
    NAME(visit)(&part, v - 1, blocks, spare, weights, sums);
    for (int k = 0; k < 4; k++) part.of[k] += behind;
    NAME(visit)(&part, v - 1, blocks, spare, weights, sums + leaves);
    part.next = WIDTH, part.gap = half * WIDTH + 8; /* by no power of two: they would share lines of the cache */
    for (int k = 0; k < 4; k++) {
        part.of[k] = spare;
        for (int block = 0; block < blocks; block++, spare += 8)
            _Pragma("GCC unroll 8") for (Py_ssize_t r = 0; r < half; r++, spare += WIDTH) *(VEC *)spare = ROW(k, block * p->gap + r * WIDTH);
    }
    NAME(visit)(&part, v - 1, blocks, spare, weights, sums + 2 * leaves);
}
#undef ROW
#undef ROWS
#undef LEAF
#undef SUM

/* The sum of some components of `words` words, each `behind` words after the last: one as it is, else in `out`. */
INLINE const uint64_t *NAME(together)(const uint64_t *from, Py_ssize_t behind, const terms *which, Py_ssize_t words, uint64_t *out) {
    if (which->count == 1) return from + which->of[0] * behind;
    for (Py_ssize_t i = 0; i < words; i += WIDTH) {
        VEC sum = {0};
        for (int k = 0; k < which->count; k++) sum ^= *(const VEC *)(from + which->of[k] * behind + i);
        *(VEC *)(out + i) = sum;
    }
    return out;
}

/* A register's part of the same, of so many blocks of rows: row after row, so that what is visited often lies near. */
INLINE void NAME(pack)(const uint64_t *from, Py_ssize_t behind, const terms *which, Py_ssize_t rows, int blocks, uint64_t *out) {
    for (int block = 0; block < blocks; block++, out += 8)
        for (Py_ssize_t r = 0; r < rows; r++, from += 8, out += WIDTH) {
            VEC sum = {0};
            for (int k = 0; k < which->count; k++) sum ^= *(const VEC *)(from + which->of[k] * behind);
            *(VEC *)out = sum;
        }
}

/* The sums over the blocks of `words` words of x_0 y_01 + x_1 y_0, the components' numbers in `of`, are added to `sums`. Many
rows of registers narrower than a row are packed first: others would fill the first cache with what they leave alone. */
TARGET static void NAME(add_group)(const uint64_t *x, const uint64_t *y, const terms *const of[4], Py_ssize_t behind, Py_ssize_t words,
                                   int v, const uint64_t *weights, uint64_t *spare, VEC *sums) {
    const Py_ssize_t rows = (Py_ssize_t)1 << v, block = 8 * rows, most = GROUP * block;
    const int blocks = (int)(words / block);
    if (WIDTH < 8 && v > 3) {
        const Py_ssize_t gap = rows * WIDTH + 8, size = blocks * gap; /* by no power of two, as in `visit` */
        node root = {{0}, WIDTH, gap};
        for (int part = 0; part < 8; part += WIDTH) {
            for (int m = 0; m < 4; m++) {
                NAME(pack)((m < 2 ? x : y) + part, behind, of[m], rows, blocks, spare + m * size);
                root.of[m] = spare + m * size;
            }
            NAME(visit)(&root, v, blocks, spare + 4 * size, weights ? weights + part : NULL, sums);
        }
        return;
    }
    node root = {{NAME(together)(x, behind, of[0], words, spare), NAME(together)(x, behind, of[1], words, spare),
                  NAME(together)(y, behind, of[2], words, spare + most), NAME(together)(y, behind, of[3], words, spare + 2 * most)}, 8, block};
    for (int part = 0; part < 8; part += WIDTH) {
        NAME(visit)(&root, v, blocks, spare + 3 * most, weights ? weights + part : NULL, sums);
        for (int m = 0; m < 4; m++) root.of[m] += WIDTH;
    }
}

/* The sums over blocks of `words` words of this party's part of x y at the points {0, 1, infinity}^v are added to `sums`;
of bits, if there are weights. Components are taken in twos. GROUP blocks are worked on together: a sum is taken up and put
down once for all of them. */
TARGET static void NAME(add_sums)(const uint64_t *x, const uint64_t *y, const rights *by, Py_ssize_t behind, Py_ssize_t words, int v,
                                  const uint64_t *weights, uint64_t *spare, VEC *sums) {
    const Py_ssize_t most = GROUP * (8 << v);
    for (Py_ssize_t at = 0; at < words; at += most)
        for (int k = 0; k < by->comps; k += 2) {
            const terms one = {1, {k}}, next = {k + 1 < by->comps, {k + 1}}, *const of[4] = {&one, &next, &by->of[k + 1], &by->of[k]};
            NAME(add_group)(x + at, y + at, of, behind, words - at < most ? words - at : most, v, weights ? weights + (at >> v) : NULL, spare, sums);
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
#define LEVELS(a, b, c, d, k, wide, narrow) \
    TRADE(a, c, 2 * (k), wide)              \
    TRADE(b, d, 2 * (k), wide)              \
    TRADE(a, b, k, narrow)                  \
    TRADE(c, d, k, narrow)

/* Sides that are folded together, where their tables fit into the first cache: they are looked up at the same places. */
enum { NAME(SIDES) = WIDTH < 8 ? 2 : 1 };

/* Of a part of 64 rows of bits of each side: for each lane l, the sum of the factors of the rows whose bit is 1, in place;
of the first side times the lane's power, if there are powers. `where[b][g]` is the byte of the table at which the sum is of
those of the rows 4 g .. 4 g + 3 that have bit b in their factor. Lines behind `ahead` are wanted next. The transpose is
Hacker's Delight 7-3. */
INLINE void NAME(fold_parts)(uint64_t *const rows[], const uint64_t *const ahead[], const int sides, const uint16_t where[64][16],
                             const VEC *powers) {
    _Alignas(64) VEC table[256][NAME(SIDES)], plane[NAME(SIDES)][64];
    for (int s = 0; s < sides; s++)
        for (int g = 0; g < 16; g++) {
            VEC(*t)[NAME(SIDES)] = table + 16 * g;
            t[0][s] = (VEC){0};
            for (int k = 0; k < 4; k++) {
                const VEC row = *(const VEC *)(rows[s] + 8 * (4 * g + k));
                for (int m = 0; m < 1 << k; m++) t[(1 << k) + m][s] = t[m][s] ^ row;
            }
        }
    for (int l = 0; l < 16; l++) {
        VEC sum[NAME(SIDES)][4];
        for (int s = 0; s < sides; s++)
            for (int m = 0; m < WIDTH / 2; m++) __builtin_prefetch(ahead[s] + 8 * (l * (WIDTH / 2) + m), 1, 2);
        for (int q = 0; q < 4; q++) {
            const uint16_t *at = where[l + 16 * q];
            for (int s = 0; s < sides; s++) sum[s][q] = (VEC){0};
            _Pragma("GCC unroll 16") for (int g = 0; g < 16; g++) {
                const VEC *found = (const VEC *)((const char *)table + at[g]);
                for (int s = 0; s < sides; s++) sum[s][q] ^= found[s];
            }
        }
        for (int s = 0; s < sides; s++) {
            LEVELS(sum[s][0], sum[s][1], sum[s][2], sum[s][3], 16, 0x00000000FFFFFFFFu, 0x0000FFFF0000FFFFu)
            for (int q = 0; q < 4; q++) plane[s][l + 16 * q] = sum[s][q];
        }
    }
    for (int s = 0; s < sides; s++) {
        for (int i = 0; i < 64; i += 16)
            for (int l = i; l < i + 4; l++) {
                VEC *p = plane[s] + l, a = p[0], b = p[4], c = p[8], d = p[12];
                LEVELS(a, b, c, d, 4, 0x00FF00FF00FF00FFu, 0x0F0F0F0F0F0F0F0Fu)
                p[0] = a, p[4] = b, p[8] = c, p[12] = d;
            }
        for (int l = 0; l < 64; l += 4) {
            const VEC *p = plane[s] + l;
            VEC row[4] = {p[0], p[1], p[2], p[3]};
            LEVELS(row[0], row[1], row[2], row[3], 1, 0x3333333333333333u, 0x5555555555555555u)
            for (int q = 0; q < 4; q++) *(VEC *)(rows[s] + 8 * (l + q)) = s || !powers ? row[q] : NAME(times)(row[q], powers[l + q]);
        }
    }
}

TARGET static void NAME(fold_part)(uint64_t *x, uint64_t *y, Py_ssize_t ahead, const uint16_t where[64][16], const VEC *powers) {
    uint64_t *const rows[] = {x, y};
    const uint64_t *const next[] = {x + ahead, y + ahead};
    NAME(fold_parts)(rows, next, NAME(SIDES), where, powers);
    if (NAME(SIDES) < 2) NAME(fold_parts)(rows + 1, next + 1, 1, where, NULL);
}

/* Folds the bits of all components of x, with X^l and the column's weight, and of y; then adds up what comes next, at
{0, 1, infinity}^v, while it is near. */
TARGET static void NAME(fold_bits)(uint64_t *x, uint64_t *y, const rights *by, const uint16_t where[64][16], Py_ssize_t words,
                                   const uint64_t *weights, int v, void *spare, void *room) {
    _Alignas(64) VEC powers[64];
    uint16_t bytes[64][16];
    for (int b = 0; b < 64; b++)
        for (int g = 0; g < 16; g++) bytes[b][g] = (uint16_t)(where[b][g] * NAME(SIDES) * sizeof(VEC));
    for (Py_ssize_t at = 0; at < words; at += 512) {
        for (int part = 0; part < 8; part += WIDTH) {
            powers[0] = *(const VEC *)(weights + at / 64 + part);
            for (int l = 1; l < 64; l++) powers[l] = (powers[l - 1] << 1) ^ (((VEC){0} - (powers[l - 1] >> 63)) & 0x1B);
            for (Py_ssize_t from = at + part; from < by->comps * words; from += words)
                NAME(fold_part)(x + from, y + from, (at + 512 < words ? 512 : 0) + 63 * part, bytes, powers);
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
