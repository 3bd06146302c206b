/* The streams of a tree's 2^k leaves are folded level by level: the odd ones' sum is the next plane, the pairs' sums go
on. Which leaf goes where depends on public numbers alone. */
TARGET static void NAME(make_columns)(const columns *w) {
    uint64_t streams[256][STEP];
    const int leaves = 1 << w->k;
    for (Py_ssize_t tree = 0; tree < w->trees; tree++) {
        const uint8_t *schedules = w->schedules + (tree << w->k) * AES_SCHEDULE;
        for (Py_ssize_t at = 0; at < w->words; at += STEP) {
            const Py_ssize_t left = w->words - at < STEP ? w->words - at : STEP;
            for (int y = 0; y < leaves; y++)
                aes_stream(schedules + y * AES_SCHEDULE, w->position + (uint64_t)at, NULL, streams[y], left);
            for (int b = 0, count = leaves; b < w->k; b++, count /= 2) {
                uint64_t plane[STEP] = {0};
                for (int y = 0; y < count; y += 2)
                    for (int i = 0; i < STEP; i++) {
                        plane[i] ^= streams[y + 1][i];
                        streams[y / 2][i] = streams[y][i] ^ streams[y + 1][i];
                    }
                if (w->fixes && tree) {
                    const uint64_t mask = w->masks[tree * w->k + b], *fix = w->fixes + (tree - 1) * w->words + at;
                    for (Py_ssize_t i = 0; i < left; i++) plane[i] ^= fix[i] & mask;
                }
                memcpy(w->planes + (tree * w->k + b) * w->words + at, plane, (size_t)left * 8);
            }
            if (w->sums) memcpy(w->sums + tree * w->words + at, streams[0], (size_t)left * 8);
        }
    }
}

#define TRADE(a, b, j, mask)                       \
    {                                              \
        words8 swap = ((a >> j) ^ b) & (mask);     \
        b ^= swap;                                 \
        a ^= swap << j;                            \
    }
#define LEVEL(x, j, mask)                                  \
    for (int i = 0; i < 64; i += 2 * (j))                  \
        for (int l = i; l < i + (j); l++) TRADE((x)[l], (x)[l + (j)], j, mask)

/* Both halves transposed (Hacker's Delight 7-3): row l then holds bit l of every plane. */
TARGET static void NAME(turn)(block *b) {
    for (int half = 0; half < 2; half++) {
        words8 *x = half ? b->high : b->low;
        LEVEL(x, 32, 0x00000000FFFFFFFFu)
        LEVEL(x, 16, 0x0000FFFF0000FFFFu)
        LEVEL(x, 8, 0x00FF00FF00FF00FFu)
        LEVEL(x, 4, 0x0F0F0F0F0F0F0F0Fu)
        LEVEL(x, 2, 0x3333333333333333u)
        LEVEL(x, 1, 0x5555555555555555u)
    }
}

#undef TRADE
#undef LEVEL
