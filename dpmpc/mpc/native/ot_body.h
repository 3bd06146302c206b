/* Columns and hashes of ot.c by one kind of AES unit. */

#define STEP (4 * WIDTH) /* words of a leaf's stream at a time: what registers hold of two leaves */
#define n 4

/* The streams of a tree's 2^k leaves are folded level by level: the odd ones' sum is the next plane, the pairs' sums go
on, each to its level as soon as it is there. Two leaves at a time, in registers. Which leaf goes where depends on public
numbers alone. */
INLINE void NAME(fold_leaves)(const uint8_t *schedules, const int k, uint64_t first, VEC planes[8][n], VEC total[n]) {
    _Alignas(64) VEC waiting[8][n];
    VEC counter[n];
    memset(planes, 0, 8 * sizeof planes[0]);
    NAME(count)(first, counter, n);
    for (int y = 0; y < 1 << k; y += 2, schedules += 2 * AES_SCHEDULE) {
        VEC even[n], odd[n];
        AES_EACH even[i] = odd[i] = counter[i];
        NAME(encrypt_two)(even, odd, n, schedules, schedules + AES_SCHEDULE);
        AES_EACH planes[0][i] ^= odd[i], odd[i] ^= even[i];
        int level = 1;
        for (; y >> level & 1; level++) AES_EACH planes[level][i] ^= odd[i], odd[i] ^= waiting[level][i];
        AES_EACH waiting[level & 7][i] = odd[i];
        if (y + 2 == 1 << k) memcpy(total, odd, sizeof odd);
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

TARGET static void NAME(make_columns)(const columns *w) {
    _Alignas(64) VEC planes[8][n], total[n];
    for (Py_ssize_t tree = 0; tree < w->trees; tree++)
        for (Py_ssize_t at = 0; at < w->words; at += STEP) {
            const uint64_t *fix = w->fixes && tree ? w->fixes + (tree - 1) * w->words + at : NULL;
            NAME(fold_leaves)(w->schedules + (tree << w->k) * AES_SCHEDULE, w->k, (w->position + (uint64_t)at) / 2, planes, total);
            for (Py_ssize_t b = 0, row = tree * w->k; b < w->k; b++, row++)
                NAME(put_words)(planes[b], fix, fix ? w->masks[row] : 0, w->planes + row * w->words + at, w->words - at);
            if (w->sums) NAME(put_words)(total, NULL, 0, w->sums + tree * w->words + at, w->words - at);
        }
}
#undef n

/* pi(x ^ d) ^ x ^ d for all of a block. */
TARGET static void NAME(hash_block)(const uint8_t *schedule, const block *in, const uint64_t *offset, block *out) {
    const int n = 8;
    VEC d;
    for (int i = 0; i < WIDTH; i++) d[i] = offset[i % 2];
    const VEC *low = (const VEC *)in->low, *high = (const VEC *)in->high;
    VEC *to_low = (VEC *)out->low, *to_high = (VEC *)out->high;
    for (int at = 0; at < 64 * 8 / WIDTH; at += 4) {
        VEC x[8], b[8];
        _Pragma("GCC unroll 4") for (int i = 0; i < 4; i++) {
            x[2 * i] = NAME(firsts)(low[at + i], high[at + i]) ^ d;
            x[2 * i + 1] = NAME(seconds)(low[at + i], high[at + i]) ^ d;
        }
        AES_EACH b[i] = x[i];
        NAME(encrypt)(b, 8, schedule);
        AES_EACH b[i] ^= x[i];
        _Pragma("GCC unroll 4") for (int i = 0; i < 4; i++) {
            to_low[at + i] = NAME(firsts)(b[2 * i], b[2 * i + 1]);
            to_high[at + i] = NAME(seconds)(b[2 * i], b[2 * i + 1]);
        }
    }
}

#undef STEP
