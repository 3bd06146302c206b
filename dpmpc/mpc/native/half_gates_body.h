/* Half-gates by one kind of AES unit; see half_gates.c. A register holds the labels of WIDTH / 2 lanes. */

/* All ones where the label's lowest bit is 1. */
INLINE VEC NAME(colour)(VEC label) { return -(NAME(firsts)(label, label) & 1); }

/* Of words (low, high): (high, low ^ high). It is linear, and so is what it differs by from its argument; both can be undone. */
INLINE VEC NAME(sigma)(VEC x) { return NAME(seconds)(x, x) ^ NAME(firsts)((VEC){0}, x); }

/* out = the XOR of the operands, of a multiple of four registers. */
INLINE void NAME(xor_slots)(const int32_t *gate, uint64_t *tile, Py_ssize_t row, Py_ssize_t words) {
    for (Py_ssize_t v = 0; v < words; v += 4 * WIDTH) {
        VEC sum[4];
        _Pragma("GCC unroll 4") for (int j = 0; j < 4; j++) sum[j] = *(const VEC *)(tile + gate[2] * row + v + j * WIDTH);
        for (int k = 1; k < gate[1]; k++) {
            const uint64_t *in = tile + gate[2 + k] * row + v;
            _Pragma("GCC unroll 4") for (int j = 0; j < 4; j++) sum[j] ^= *(const VEC *)(in + j * WIDTH);
        }
        _Pragma("GCC unroll 4") for (int j = 0; j < 4; j++) *(VEC *)(tile + gate[0] * row + v + j * WIDTH) = sum[j];
    }
}

/* A random bit's labels: the garbler's string that is chosen by 0, XOR Delta where its own bit is 1, and the correction; the
evaluator's string, XOR the correction where its choice is 1. `bits` has a word a lane, or is NULL, as is `other`. */
INLINE void NAME(load)(const uint64_t *base, const uint64_t *other, const uint64_t *bits, uint64_t *made, const uint64_t *fix, VEC delta,
                       uint64_t *out, Py_ssize_t words) {
    for (Py_ssize_t v = 0; v < words; v += WIDTH) {
        VEC label = *(const VEC *)(base + v), value = delta;
        if (other) *(VEC *)(made + v) = label ^ *(const VEC *)(other + v) ^ delta;
        if (fix) value = *(const VEC *)(fix + v);
        if (bits) {
            VEC mask;
            for (int j = 0; j < WIDTH; j++) mask[j] = -(bits[(v + j) / 2] & 1);
            label ^= mask & value;
        }
        *(VEC *)(out + v) = label;
    }
}

/* An AND of `words` words, a multiple of what two registers hold; `keys`: of its halves, `tweaks`: of its lanes. A tweak is
XORed to what is encrypted, not to what is added to that. */
INLINE void NAME(garble_row)(const uint64_t *a, const uint64_t *b, uint64_t *out, uint64_t *first, uint64_t *second, Py_ssize_t words, VEC d,
                             const uint8_t *keys, const uint64_t *tweaks) {
    const VEC moved = NAME(sigma)(d);
    for (Py_ssize_t at = 0; at < words; at += 2 * WIDTH) {
        VEC x[4], y[4];
        _Pragma("GCC unroll 2") for (int j = 0; j < 2; j++) {
            const VEC tweak = *(const VEC *)(tweaks + at + j * WIDTH);
            x[j] = NAME(sigma)(*(const VEC *)(a + at + j * WIDTH)) ^ tweak, x[2 + j] = x[j] ^ moved;
            y[j] = NAME(sigma)(*(const VEC *)(b + at + j * WIDTH)) ^ tweak, y[2 + j] = y[j] ^ moved;
        }
        NAME(encrypt_two)(x, y, 4, keys, keys + AES_SCHEDULE);
        _Pragma("GCC unroll 2") for (int j = 0; j < 2; j++) {
            const VEC left = *(const VEC *)(a + at + j * WIDTH), right = *(const VEC *)(b + at + j * WIDTH);
            const VEC one = x[j] ^ x[2 + j] ^ moved ^ (NAME(colour)(right) & d), both = y[j] ^ y[2 + j] ^ moved;
            *(VEC *)(first + at + j * WIDTH) = one;
            *(VEC *)(second + at + j * WIDTH) = both ^ left;
            *(VEC *)(out + at + j * WIDTH) =
                x[j] ^ y[j] ^ NAME(sigma)(left ^ right) ^ (NAME(colour)(left) & one) ^ (NAME(colour)(right) & both);
        }
    }
}

/* The same of the labels that are held, of what four registers hold. */
INLINE void NAME(evaluate_row)(const uint64_t *a, const uint64_t *b, uint64_t *out, const uint64_t *first, const uint64_t *second,
                               Py_ssize_t words, const uint8_t *keys, const uint64_t *tweaks) {
    for (Py_ssize_t at = 0; at < words; at += 4 * WIDTH) {
        VEC x[4], y[4];
        _Pragma("GCC unroll 4") for (int j = 0; j < 4; j++) {
            const VEC tweak = *(const VEC *)(tweaks + at + j * WIDTH);
            x[j] = NAME(sigma)(*(const VEC *)(a + at + j * WIDTH)) ^ tweak;
            y[j] = NAME(sigma)(*(const VEC *)(b + at + j * WIDTH)) ^ tweak;
        }
        NAME(encrypt_two)(x, y, 4, keys, keys + AES_SCHEDULE);
        _Pragma("GCC unroll 4") for (int j = 0; j < 4; j++) {
            const VEC left = *(const VEC *)(a + at + j * WIDTH), right = *(const VEC *)(b + at + j * WIDTH);
            *(VEC *)(out + at + j * WIDTH) = x[j] ^ y[j] ^ NAME(sigma)(left ^ right) ^
                                             (NAME(colour)(left) & *(const VEC *)(first + at + j * WIDTH)) ^
                                             (NAME(colour)(right) & (*(const VEC *)(second + at + j * WIDTH) ^ left));
        }
    }
}

/* Lanes of words at .. at + words - 1 of every row, through all layers. */
TARGET static void NAME(walk)(const circuit *c, uint64_t *tile, Py_ssize_t at, Py_ssize_t words) {
    const int32_t *step = c->script, *end = c->script + c->script_size;
    const Py_ssize_t row = c->tile;
    Py_ssize_t random = 0, mask = 0, gate = 0;
    VEC d;
    for (int i = 0; i < WIDTH; i++) d[i] = c->delta ? c->delta[i % 2] : 0;
    memset(tile, 0, (size_t)words * 8);
    for (Py_ssize_t v = 0; v < words; v += WIDTH) *(VEC *)(tile + row + v) = d;
    while (step < end) {
        const int32_t *counts = step;
        step += LAYER;
        for (int32_t i = 0; i < counts[0]; i++, random++) {
            const Py_ssize_t from = random * c->row + c->at + at, fix = random * c->words + at;
            NAME(load)(c->base + from, c->other ? c->other + from : NULL, c->bits ? c->bits + from / 2 : NULL, c->made ? c->made + fix : NULL,
                       c->fixes ? c->fixes + fix : NULL, d, tile + *step++ * row, words);
        }
        for (int32_t i = 0; i < counts[1]; i++, mask++) memcpy(tile + *step++ * row, c->masks + mask * c->words + at, (size_t)words * 8);
        for (const int32_t *last = step + counts[2]; step < last; step += 2 + step[1]) NAME(xor_slots)(step, tile, row, words);
        for (int32_t i = 0; i < counts[3]; i++, gate++, step += 3) {
            uint64_t *first = c->tables + 2 * gate * c->words + at, *second = first + c->words;
            const uint64_t *a = tile + step[1] * row, *b = tile + step[2] * row;
            const uint8_t *keys = c->keys + 2 * gate * AES_SCHEDULE;
            if (c->delta)
                NAME(garble_row)(a, b, tile + step[0] * row, first, second, words, d, keys, c->tweaks + at);
            else
                NAME(evaluate_row)(a, b, tile + step[0] * row, first, second, words, keys, c->tweaks + at);
        }
    }
    for (Py_ssize_t i = 0; i < c->output_count; i++)
        memcpy(c->ends + i * c->words + at, tile + c->outputs[i] * row, (size_t)words * 8);
}
