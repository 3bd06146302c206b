/* Lifts of lifts.c by one kind of vector unit. A tile's last columns, where there are fewer than eight, take a detour over
`spare` rows. */

#define EVERY for (int i = 0; i < 8; i += WIDTH)

/* value * coefficient; which coefficient is public. */
TARGET static inline VEC NAME(times)(VEC value, uint64_t coefficient) {
    if (!(coefficient & (coefficient - 1)) && coefficient) return value << __builtin_ctzll(coefficient);
    return value * coefficient;
}

TARGET static inline void NAME(load)(const uint64_t *in, Py_ssize_t left, uint64_t *out) {
    if (left >= 8)
        EVERY *(VEC *)(out + i) = *(const VEC *)(in + i);
    else
        for (int i = 0; i < 8; i++) out[i] = i < left ? in[i] : 0;
}

TARGET static inline void NAME(add_to)(uint64_t *total, const uint64_t *more, Py_ssize_t left) {
    if (left >= 8)
        EVERY *(VEC *)(total + i) += *(const VEC *)(more + i);
    else
        for (int i = 0; i < left; i++) total[i] += more[i];
}

TARGET static inline void NAME(put)(uint64_t *out, const uint64_t *in, Py_ssize_t left) {
    if (left >= 8)
        EVERY *(VEC *)(out + i) = *(const VEC *)(in + i);
    else
        for (int i = 0; i < left; i++) out[i] = in[i];
}

/* The offerer: bit = q0 ^ q1 of a lane's lowest bits, the total takes (bit + 2 q0) c, what is sent is (q0 - q1 + bit) / 2. */
TARGET static void NAME(offer)(const lifted *w, Py_ssize_t begin, Py_ssize_t end) {
    _Alignas(64) uint64_t a[8], b[8], more[8], low[8];
    tile x;
    for (Py_ssize_t t = begin; t < end; t++) {
        const Py_ssize_t at = 8 * t, left = w->words - at;
        uint64_t *row = w->rows + at;
        for (Py_ssize_t k = 0; k < w->lifts; k++) {
            const uint64_t c = w->coefficients[k];
            EVERY *(VEC *)(low + i) = (VEC){0};
            for (int r = 0; r < 64; r++) {
                NAME(load)(w->first.words + r * w->first.apart + k * w->words + at, left, a);
                NAME(load)(w->second.words + r * w->second.apart + k * w->words + at, left, b);
                EVERY {
                    const VEC q = *(VEC *)(a + i), p = *(VEC *)(b + i), bit = (q ^ p) & 1;
                    *(VEC *)(more + i) = NAME(times)(bit + (q << 1), c);
                    *(VEC *)(x.at[r] + i) = (q - p + bit) >> 1;
                    *(VEC *)(low + i) |= bit << r;
                }
                NAME(add_to)(w->total + r * w->words + at, more, left);
            }
            transpose_tile(&x.at[0][0]);
            for (int r = 0; r < w->sent[k]; r++, row += w->words) NAME(put)(row, x.at[r], left);
            NAME(put)(w->bits + k * w->words + at, low, left);
        }
    }
}

/* The chooser: the total loses 2 q c. */
TARGET static void NAME(choose)(const lifted *w, Py_ssize_t begin, Py_ssize_t end) {
    _Alignas(64) uint64_t a[8];
    for (Py_ssize_t t = begin; t < end; t++) {
        const Py_ssize_t at = 8 * t, left = w->words - at;
        for (Py_ssize_t k = 0; k < w->lifts; k++)
            for (int r = 0; r < 64; r++) {
                NAME(load)(w->first.words + r * w->first.apart + k * w->words + at, left, a);
                EVERY *(VEC *)(a + i) = -NAME(times)(*(VEC *)(a + i) << 1, w->coefficients[k]);
                NAME(add_to)(w->total + r * w->words + at, a, left);
            }
    }
}

/* The chooser, when it was told D / 2: the total takes (u - 2 u D) c. */
TARGET static void NAME(finish)(const lifted *w, Py_ssize_t begin, Py_ssize_t end) {
    _Alignas(64) uint64_t more[8];
    tile x;
    for (Py_ssize_t t = begin; t < end; t++) {
        const Py_ssize_t at = 8 * t, left = w->words - at;
        const uint64_t *row = w->told + at;
        for (Py_ssize_t k = 0; k < w->lifts; k++) {
            memset(&x, 0, sizeof x);
            NAME(load)(w->choices + k * w->words + at, left, x.at[0]);
            for (int r = 1; r <= w->sent[k]; r++, row += w->words) NAME(load)(row, left, x.at[r]);
            transpose_tile(&x.at[0][0]);
            for (int r = 0; r < 64; r++) {
                EVERY {
                    const VEC both = *(VEC *)(x.at[r] + i), u = both & 1;
                    *(VEC *)(more + i) = NAME(times)(u - (-u & ((both - u) << 1)), w->coefficients[k]);
                }
                NAME(add_to)(w->total + r * w->words + at, more, left);
            }
        }
    }
}

#undef EVERY
