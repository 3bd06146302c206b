/* Columns and hashes of ot.c by one kind of AES unit. */

#define STEP (4 * WIDTH) /* words of a leaf's stream at a time: what registers hold of two leaves */
#define n 4

/* The streams of a tree's 2^k leaves are added up in the order of a Gray code: leaf i ^ i / 2 is the next. One bit of the
leaf changes from step to step, so plane b, the sum of the leaves with bit b, is that of the sums so far at the steps where
bit b changes; at the last leaf bit k - 1 alone is 1. The first leaf, 0, is in no plane, and is left out without `total`.
Sums come without the leaves' last round keys, whose sums `planes` and `total` begin with. Which leaf goes where depends on
public numbers alone. */
INLINE void NAME(fold_leaves)(const uint8_t *schedules, const int k, uint64_t first, VEC planes[8][n], VEC *total) {
    VEC counter[n], sum[n], next[n];
    NAME(count)(first, counter, n);
    AES_EACH sum[i] = (VEC){0};
    for (int y = 0; y < 1 << k; y += 2) {
        const uint8_t *even = schedules + (y ^ y >> 1) * AES_SCHEDULE, *odd = schedules + ((y + 1) ^ y >> 1) * AES_SCHEDULE;
        const int changes = y + 2 == 1 << k ? k - 1 : __builtin_ctz((unsigned)y + 2);
        if (!y && !total) {
            AES_EACH next[i] = sum[i];
            NAME(add_stream)(next, counter, n, odd);
        } else {
            NAME(add_streams)(sum, next, counter, n, even, odd);
            AES_EACH planes[0][i] ^= sum[i];
        }
        AES_EACH planes[changes][i] ^= next[i], sum[i] = next[i];
    }
    if (total) AES_EACH total[i] ^= sum[i];
}

/* Of the last round keys of a tree's leaves: the sum for each plane, and of all. */
INLINE void NAME(fold_keys)(const uint8_t *schedules, const int k, VEC keys[9]) {
    for (int b = 0; b < 9; b++) keys[b] = (VEC){0};
    for (int y = 0; y < 1 << k; y++) {
        const VEC key = ROUND_KEY(schedules + y * AES_SCHEDULE + 160);
        for (int b = 0; b < k; b++)
            if (y >> b & 1) keys[b] ^= key;
        keys[8] ^= key;
    }
}

/* out = x, XOR fix where the mask says, if there is a fix. */
INLINE void NAME(put_words)(const VEC *x, const uint64_t *fix, uint64_t mask, uint64_t *out, Py_ssize_t left) {
    if (left >= STEP) {
        for (int i = 0; i < n; i++) {
            VEC fixed = x[i];
            if (fix) fixed ^= *(const VEC *)(fix + i * WIDTH) & mask;
            *(VEC *)(out + i * WIDTH) = fixed;
        }
        return;
    }
    uint64_t spare[STEP];
    memcpy(spare, x, sizeof spare);
    for (Py_ssize_t i = 0; i < left; i++) out[i] = fix ? spare[i] ^ (fix[i] & mask) : spare[i];
}

/* The columns of one tree. */
INLINE void NAME(make_tree)(const columns *w, Py_ssize_t tree, const int k) {
    _Alignas(64) VEC planes[8][n], total[n];
    const uint8_t *schedules = w->schedules + (tree << k) * AES_SCHEDULE;
    VEC keys[9];
    NAME(fold_keys)(schedules, k, keys);
    for (Py_ssize_t at = 0; at < w->words; at += STEP) {
        const uint64_t *fix = w->fixes && tree ? w->fixes + (tree - 1) * w->words + at : NULL;
        for (int b = 0; b < k; b++) AES_EACH planes[b][i] = keys[b];
        AES_EACH total[i] = keys[8];
        NAME(fold_leaves)(schedules, k, (w->position + (uint64_t)at) / 2, planes, w->sums ? total : NULL);
        for (Py_ssize_t b = 0, row = tree * k; b < k; b++, row++)
            NAME(put_words)(planes[b], fix, fix ? w->masks[row] : 0, w->planes + row * w->words + at, w->words - at);
        if (w->sums) NAME(put_words)(total, NULL, 0, w->sums + tree * w->words + at, w->words - at);
    }
}

TARGET static void NAME(make_columns)(const columns *w) {
    for (Py_ssize_t tree = 0; tree < w->trees; tree++)
        if (w->k == 4) /* of a known size: in registers */
            NAME(make_tree)(w, tree, 4);
        else
            NAME(make_tree)(w, tree, w->k);
}
#undef n

/* pi(y) ^ y with y = x ^ tweak ^ d for all of a block: the low words to 64 rows that are `apart` words from each other, the
high ones too unless `high` is NULL. */
TARGET static void NAME(hash_block)(const uint8_t *schedule, const block *in, const tweaks *t, const uint64_t *offset, uint64_t *low, uint64_t *high,
                                    Py_ssize_t apart) {
    const int n = 8;
    VEC even[8 / WIDTH], odd[8 / WIDTH]; /* of words 0, 2, ... and 1, 3, ... of what a register of a row holds, with d */
    for (int j = 0; j < 8 / WIDTH; j++)
        for (int i = 0; i < WIDTH; i++) {
            const int word = j * WIDTH + i / 2 * 2;
            even[j][i] = t->words[word][i % 2] ^ offset[i % 2], odd[j][i] = t->words[word + 1][i % 2] ^ offset[i % 2];
        }
    for (int row = 0; row < 64; row += WIDTH / 2) {
        VEC x[8], b[8];
        _Pragma("GCC unroll 4") for (int i = 0; i < 4; i++) {
            const VEC first = *((const VEC *)in->low[row] + i), second = *((const VEC *)in->high[row] + i);
            const VEC of_bit = ROUND_KEY((const uint8_t *)(t->bits + 2 * (row + i * WIDTH / 8)));
            x[2 * i] = NAME(firsts)(first, second) ^ even[i % (8 / WIDTH)] ^ of_bit;
            x[2 * i + 1] = NAME(seconds)(first, second) ^ odd[i % (8 / WIDTH)] ^ of_bit;
        }
        AES_EACH b[i] = x[i];
        NAME(encrypt)(b, 8, schedule);
        AES_EACH b[i] ^= x[i];
        _Pragma("GCC unroll 4") for (int i = 0; i < 4; i++) {
            const Py_ssize_t at = (row + i * WIDTH / 8) * apart + i * WIDTH % 8; /* four registers hold WIDTH / 2 rows */
            *(VEC *)(low + at) = NAME(firsts)(b[2 * i], b[2 * i + 1]);
            if (high) *(VEC *)(high + at) = NAME(seconds)(b[2 * i], b[2 * i + 1]);
        }
    }
}

#undef STEP
