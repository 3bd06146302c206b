/* What a layer does to the tiles from `begin` to `end`; see program.c for the arrays. Rows are worked on four vectors
of eight words at a time, so that what is looked up once for a gate serves 256 bytes; then one vector; then one word. */

#define INLINE TARGET static inline __attribute__((always_inline)) void
#define FOUR 32 /* words */
#define EACH for (int j = 0; j < n; j++)
#define IN(p) (((const words8 *)(p))[j])
#define OUT(p) (((words8 *)(p))[j])

/* Words v .. v + 8 n - 1 of out = a ^ b ^ ... */
INLINE NAME(xor_piece)(const int32_t *gate, uint64_t *tile, Py_ssize_t row, Py_ssize_t v, const int n) {
    words8 sum[4];
    const uint64_t *in = tile + gate[2] * row + v;
    EACH sum[j] = IN(in);
    for (int k = 1; k < gate[1]; k++) {
        in = tile + gate[2 + k] * row + v;
        EACH sum[j] ^= IN(in);
    }
    EACH OUT(tile + gate[0] * row + v) = sum[j];
}

TARGET static void NAME(xor_rows)(const layer *w, uint64_t *tile) {
    Py_ssize_t row = w->comps * w->tile;
    for (Py_ssize_t i = 0; i < w->xor_count; i += 2 + w->xors[i + 1]) {
        Py_ssize_t v = 0;
        for (; v + FOUR <= row; v += FOUR) NAME(xor_piece)(w->xors + i, tile, row, v, 4);
        for (; v < row; v += 8) NAME(xor_piece)(w->xors + i, tile, row, v, 1);
    }
}

/* out = a ^ b, or a copy of a. */
TARGET static void NAME(xor_words)(const uint64_t *a, const uint64_t *b, uint64_t *out, Py_ssize_t words) {
    Py_ssize_t v = 0;
    if (!b) {
        memcpy(out, a, (size_t)words * 8);
        return;
    }
    for (; v + 8 <= words; v += 8) *(words8 *)(out + v) = *(const words8 *)(a + v) ^ *(const words8 *)(b + v);
    for (; v < words; v++) out[v] = a[v] ^ b[v];
}

/* out = the XOR of a piece of a row of every source, and of `sum` if there is one; zeros if there is nothing. A sum goes
to `out` no sooner than it must: an array and a key stream are added in one pass. */
TARGET static void NAME(add_up)(const source *from, int count, Py_ssize_t place, const uint64_t *sum, uint64_t *out, Py_ssize_t words) {
    for (int k = 0; k < count; k++) {
        if (from[k].schedule)
            aes_stream(from[k].schedule, from[k].position + (uint64_t)place, sum, out, words);
        else if (sum)
            NAME(xor_words)(sum, from[k].words + place, out, words);
        else {
            sum = from[k].words + place;
            continue;
        }
        sum = out;
    }
    if (!sum)
        memset(out, 0, (size_t)words * 8);
    else if (sum != out)
        NAME(xor_words)(sum, NULL, out, words);
}

/* The XOR of the sources of a deposit, row by row, to one component of its slots. */
TARGET static void NAME(put_rows)(const layer *w, const deposit *from, uint64_t *tile, Py_ssize_t at, Py_ssize_t words) {
    Py_ssize_t row = w->comps * w->tile;
    for (Py_ssize_t i = 0; i < from->count; i++) {
        uint64_t *out = tile + from->slots[i] * row + from->comp * w->tile;
        NAME(add_up)(w->sources + from->first, from->count_sources, i * w->words + at, NULL, out, words);
    }
}

INLINE NAME(and_piece)(const layer *w, const uint64_t *x, const uint64_t *y, Py_ssize_t place, const int n) {
    words8 sum[4], right[4];
    EACH sum[j] = (words8){0};
    for (const int32_t *pair = w->pairs; pair < w->pairs + w->pair_count; pair += 2 + pair[1]) {
        const uint64_t *left = x + pair[0] * w->tile, *in = y + pair[2] * w->tile;
        EACH right[j] = IN(in);
        for (int r = 1; r < pair[1]; r++) {
            in = y + pair[2 + r] * w->tile;
            EACH right[j] ^= IN(in);
        }
        EACH sum[j] ^= IN(left) & right[j];
    }
    EACH OUT(w->message + place) = sum[j];
}

/* This party's part of x y for each AND, XOR its masks, to the message. A pair is: left component, how many right ones,
those. */
TARGET static void NAME(multiply)(const layer *w, const uint64_t *tile, Py_ssize_t at, Py_ssize_t words) {
    Py_ssize_t row = w->comps * w->tile;
    for (Py_ssize_t i = 0; i < w->and_count; i++) {
        const uint64_t *x = tile + w->ands[3 * i + 1] * row, *y = tile + w->ands[3 * i + 2] * row;
        Py_ssize_t v = 0, place = i * w->words + at;
        for (; v + FOUR <= words; v += FOUR) NAME(and_piece)(w, x + v, y + v, place + v, 4);
        for (; v + 8 <= words; v += 8) NAME(and_piece)(w, x + v, y + v, place + v, 1);
        for (; v < words; v++) {
            uint64_t sum = 0;
            for (const int32_t *pair = w->pairs; pair < w->pairs + w->pair_count; pair += 2 + pair[1]) {
                uint64_t right = 0;
                for (int r = 0; r < pair[1]; r++) right ^= y[pair[2 + r] * w->tile + v];
                sum ^= x[pair[0] * w->tile + v] & right;
            }
            w->message[place + v] = sum;
        }
        NAME(add_up)(w->own, w->own_count, place, w->message + place, w->message + place, words);
    }
}

/* Copies past the caches, which will have forgotten it when it is read. */
INLINE NAME(copy_past)(uint64_t *out, const uint64_t *in, Py_ssize_t words) {
    Py_ssize_t i = 0;
    for (; i < words && (uintptr_t)(out + i) % 64; i++) out[i] = in[i];
    for (; i + 8 <= words; i += 8) STORE_PAST(out + i, *(const words8 *)(in + i));
    for (; i < words; i++) out[i] = in[i];
}

/* The operands of each AND, each component apart: row i of component k goes to row `first` + i of part k, (components, rows,
words); `turned`: of part components - 1 - k. */
TARGET static void NAME(keep)(const layer *w, const uint64_t *tile, Py_ssize_t at, Py_ssize_t words) {
    for (int side = 0; side < 2; side++)
        for (Py_ssize_t k = 0; k < w->comps; k++) {
            uint64_t *part = w->kept[side] + (w->turned ? w->comps - 1 - k : k) * w->part + at;
            for (Py_ssize_t i = 0; i < w->and_count; i++)
                NAME(copy_past)(part + (w->first + i) * w->words, tile + (w->ands[3 * i + 1 + side] * w->comps + k) * w->tile, words);
        }
    PAST_IS_DONE;
}

TARGET static void NAME(run_layer)(const layer *w, Py_ssize_t begin, Py_ssize_t end) {
    for (Py_ssize_t t = begin; t < end; t++) {
        uint64_t *tile = w->state + t * w->slots * w->comps * w->tile;
        Py_ssize_t at = t * w->tile, words = w->words - at < w->tile ? w->words - at : w->tile;
        for (Py_ssize_t d = 0; d < w->deposit_count; d++) NAME(put_rows)(w, w->deposits + d, tile, at, words);
        NAME(xor_rows)(w, tile);
        if (w->and_count) NAME(multiply)(w, tile, at, words);
        if (w->kept[0]) NAME(keep)(w, tile, at, words);
    }
}

/* Slots of the tiles out into rows: (slot, component, word). */
TARGET static void NAME(gather_rows)(const layer *w, const int32_t *slots, Py_ssize_t count, uint64_t *out) {
    Py_ssize_t row = w->comps * w->tile;
    for (Py_ssize_t t = 0; t < w->tiles; t++) {
        const uint64_t *tile = w->state + t * w->slots * row;
        Py_ssize_t at = t * w->tile, words = w->words - at < w->tile ? w->words - at : w->tile;
        for (Py_ssize_t i = 0; i < count; i++)
            for (Py_ssize_t k = 0; k < w->comps; k++)
                memcpy(out + (i * w->comps + k) * w->words + at, tile + slots[i] * row + k * w->tile, (size_t)words * 8);
    }
}

#undef INLINE
#undef FOUR
#undef EACH
#undef IN
#undef OUT
