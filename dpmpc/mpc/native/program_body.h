/* What a layer does to the tiles from `begin` to `end`; see program.c for the arrays. Rows are worked on several registers
at a time, so that what is looked up once for a gate serves 256 bytes, or 128 of the narrowest; then one; then one word. */

#define INLINE TARGET static inline __attribute__((always_inline)) void
#define MANY (WIDTH > 2 ? 32 / WIDTH : 8) /* registers of sums; there are 16 and more */
#define FEW 4 /* where another one is held beside each */
#define EACH _Pragma("GCC unroll 8") for (int j = 0; j < n; j++)
#define IN(p) (((const VEC *)(p))[j])
#define OUT(p) (((VEC *)(p))[j])

/* Words v .. v + n WIDTH - 1 of out = a ^ b ^ ... */
INLINE NAME(xor_piece)(const int32_t *gate, uint64_t *tile, Py_ssize_t row, Py_ssize_t v, const int n) {
    VEC sum[MANY];
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
        for (; v + MANY * WIDTH <= row; v += MANY * WIDTH) NAME(xor_piece)(w->xors + i, tile, row, v, MANY);
        for (; v < row; v += WIDTH) NAME(xor_piece)(w->xors + i, tile, row, v, 1);
    }
}

/* out = a ^ b, or a copy of a. */
TARGET static void NAME(xor_words)(const uint64_t *a, const uint64_t *b, uint64_t *out, Py_ssize_t words) {
    Py_ssize_t v = 0;
    if (!b) {
        memcpy(out, a, (size_t)words * 8);
        return;
    }
    for (; v + WIDTH <= words; v += WIDTH) *(VEC *)(out + v) = *(const VEC *)(a + v) ^ *(const VEC *)(b + v);
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

/* Copies past the caches, which will have forgotten it when it is read. */
INLINE NAME(copy_past)(uint64_t *out, const uint64_t *in, Py_ssize_t words) {
    Py_ssize_t i = 0;
    for (; i < words && (uintptr_t)(out + i) % sizeof(VEC); i++) out[i] = in[i];
    for (; i + WIDTH <= words; i += WIDTH) STORE_PAST(out + i, *(const VEC *)(in + i));
    for (; i < words; i++) out[i] = in[i];
}

/* The XOR of the sources of a deposit, row by row, to one component of its slots. */
TARGET static void NAME(put_rows)(const layer *w, const deposit *from, uint64_t *tile, Py_ssize_t at, Py_ssize_t words) {
    Py_ssize_t row = w->comps * w->tile;
    for (Py_ssize_t i = 0; i < from->count; i++) {
        uint64_t *out = tile + from->slots[i] * row + from->comp * w->tile;
        NAME(add_up)(w->sources + from->first, from->count_sources, i * w->words + at, from->added ? out : NULL, out, words);
        if (from->copy) NAME(copy_past)(from->copy + i * w->words + at, out, words);
    }
    if (from->copy) PAST_IS_DONE;
}

INLINE NAME(and_piece)(const layer *w, const uint64_t *x, const uint64_t *y, const uint64_t *add, uint64_t *out, const int n) {
    VEC sum[FEW], right[FEW];
    if (add)
        EACH sum[j] = IN(add);
    else
        EACH sum[j] = (VEC){0};
    for (const int32_t *pair = w->pairs; pair < w->pairs + w->pair_count; pair += 2 + pair[1]) {
        const uint64_t *left = x + pair[0] * w->tile, *in = y + pair[2] * w->tile;
        EACH right[j] = IN(in);
        for (int r = 1; r < pair[1]; r++) {
            in = y + pair[2 + r] * w->tile;
            EACH right[j] ^= IN(in);
        }
        EACH sum[j] ^= IN(left) & right[j];
    }
    EACH OUT(out) = sum[j];
}

/* This party's part of x y, XOR `add` unless that is NULL; a piece of a row. A pair is: left component, how many right ones,
those. */
INLINE NAME(multiply)(const layer *w, const uint64_t *x, const uint64_t *y, const uint64_t *add, uint64_t *out, Py_ssize_t words) {
    Py_ssize_t v = 0;
    for (; v + FEW * WIDTH <= words; v += FEW * WIDTH) NAME(and_piece)(w, x + v, y + v, add ? add + v : NULL, out + v, FEW);
    for (; v + WIDTH <= words; v += WIDTH) NAME(and_piece)(w, x + v, y + v, add ? add + v : NULL, out + v, 1);
    for (; v < words; v++) {
        uint64_t sum = add ? add[v] : 0;
        for (const int32_t *pair = w->pairs; pair < w->pairs + w->pair_count; pair += 2 + pair[1]) {
            uint64_t right = 0;
            for (int r = 0; r < pair[1]; r++) right ^= y[pair[2 + r] * w->tile + v];
            sum ^= x[pair[0] * w->tile + v] & right;
        }
        out[v] = sum;
    }
}

/* What is known at once of an AND's result goes to its slot: each own mask to its component; this party's part of x y with
the own masks, which is the message, to the component `target`; other parties' masks. No operand is in that slot. */
TARGET static void NAME(result)(const layer *w, uint64_t *slot, const uint64_t *x, const uint64_t *y, Py_ssize_t place, Py_ssize_t words) {
    uint64_t *target = slot + w->target * w->tile, *sum = w->message ? w->message + place : target;
    for (int k = 0; k < w->own_count; k++)
        NAME(add_up)(&w->masks[k].of, 1, place, NULL, slot + w->masks[k].comp * w->tile, words);
    if (w->own_count)
        NAME(multiply)(w, x, y, slot + w->masks[0].comp * w->tile, sum, words);
    else
        NAME(multiply)(w, x, y, NULL, sum, words);
    for (int k = 1; k < w->own_count; k++) NAME(xor_words)(sum, slot + w->masks[k].comp * w->tile, sum, words);
    for (int k = w->own_count; k < w->mask_count; k++) {
        uint64_t *out = slot + w->masks[k].comp * w->tile;
        NAME(add_up)(&w->masks[k].of, 1, place, out == target ? sum : out, out, words);
        if (out == target) sum = target;
    }
    if (sum != target) NAME(xor_words)(sum, NULL, target, words);
}

/* The operands of each AND, each component apart: row i of component k goes to row `first` + i of part k, (components, rows,
words); `turned`: of part components - 1 - k. And the target's results. One array after the other: what is written past the
caches wants to be written in a row. */
TARGET static void NAME(keep)(const layer *w, const uint64_t *tile, Py_ssize_t at, Py_ssize_t words) {
    for (int side = 0; side < 2; side++)
        for (Py_ssize_t k = 0; k < w->comps; k++) {
            uint64_t *part = w->kept[side] + (w->turned ? w->comps - 1 - k : k) * w->part + w->first * w->words + at;
            for (Py_ssize_t i = 0; i < w->and_count; i++)
                NAME(copy_past)(part + i * w->words, tile + (w->ands[3 * i + 1 + side] * w->comps + k) * w->tile, words);
        }
    uint64_t *part = w->kept[2] + w->first * w->words + at;
    for (Py_ssize_t i = 0; i < w->and_count; i++)
        NAME(copy_past)(part + i * w->words, tile + (w->ands[3 * i] * w->comps + w->target) * w->tile, words);
    PAST_IS_DONE;
}

TARGET static void NAME(and_rows)(const layer *w, uint64_t *tile, Py_ssize_t at, Py_ssize_t words) {
    Py_ssize_t row = w->comps * w->tile;
    for (Py_ssize_t i = 0; i < w->and_count; i++) {
        const int32_t *gate = w->ands + 3 * i;
        NAME(result)(w, tile + gate[0] * row, tile + gate[1] * row, tile + gate[2] * row, i * w->words + at, words);
    }
    if (w->kept[0]) NAME(keep)(w, tile, at, words);
}

TARGET static void NAME(run_layer)(const layer *w, Py_ssize_t begin, Py_ssize_t end) {
    for (Py_ssize_t t = begin; t < end; t++) {
        uint64_t *tile = w->state + t * w->slots * w->comps * w->tile;
        Py_ssize_t at = t * w->tile, words = w->words - at < w->tile ? w->words - at : w->tile;
        for (Py_ssize_t d = 0; d < w->deposit_count; d++) NAME(put_rows)(w, w->deposits + d, tile, at, words);
        NAME(xor_rows)(w, tile);
        NAME(and_rows)(w, tile, at, words);
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
#undef MANY
#undef FEW
#undef EACH
#undef IN
#undef OUT
