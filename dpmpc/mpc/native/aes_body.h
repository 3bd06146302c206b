/* The stream of aes.c by one kind of AES unit. */

#define MANY 8 /* registers that are made side by side */

/* From block `first` on, n registers of the stream, or, of an `odd` one, of what begins a word later; then the last
register's words are kept for those that follow. XOR `in`, unless that is NULL. */
INLINE void NAME(make)(const VEC *keys, uint64_t first, VEC *b, const int n, int odd, VEC *last, const uint64_t *in) {
    NAME(count)(first, b, n);
    NAME(encrypt_under)(b, n, keys);
    if (odd) AES_EACH {
            const VEC made = b[i];
            b[i] = LATER(*last, made), *last = made;
        }
    if (in) AES_EACH b[i] ^= *(const VEC *)(in + i * WIDTH);
}

/* What is left, less than MANY registers of which n hold all: the last one is not taken whole. */
INLINE void NAME(make_rest)(const VEC *keys, uint64_t first, const int n, int odd, VEC *last, const uint64_t *in, uint64_t *out,
                            Py_ssize_t count) {
    VEC b[MANY], given = {0};
    const Py_ssize_t whole = count / WIDTH, rest = count % WIDTH;
    NAME(make)(keys, first, b, n, odd, last, NULL);
    AES_EACH {
        if (i < whole) {
            if (in) b[i] ^= *(const VEC *)(in + i * WIDTH);
            *(VEC *)(out + i * WIDTH) = b[i];
        } else if (i == whole && rest) {
            if (in) memcpy(&given, in + i * WIDTH, (size_t)rest * 8);
            given ^= b[i];
            memcpy(out + i * WIDTH, &given, (size_t)rest * 8);
        }
    }
}

TARGET static void NAME(stream)(const uint8_t *schedule, uint64_t position, const uint64_t *in, uint64_t *out, Py_ssize_t count) {
    const int odd = position & 1;
    uint64_t block = position / 2;
    VEC keys[11], b[MANY], last = {0};
    const int n = MANY;
    for (int r = 0; r < 11; r++) keys[r] = ROUND_KEY(schedule + 16 * r);
    if (odd) {
        NAME(count)(block, b, 1);
        NAME(encrypt_under)(b, 1, keys);
        last = b[0], block += WIDTH / 2;
    }
    for (; count >= n * WIDTH; count -= n * WIDTH, out += n * WIDTH, block += n * WIDTH / 2) {
        NAME(make)(keys, block, b, n, odd, &last, in);
        AES_EACH *(VEC *)(out + i * WIDTH) = b[i];
        if (in) in += n * WIDTH;
    }
    if (count > MANY / 2 * WIDTH)
        NAME(make_rest)(keys, block, MANY, odd, &last, in, out, count);
    else if (count > 2 * WIDTH)
        NAME(make_rest)(keys, block, MANY / 2, odd, &last, in, out, count);
    else if (count > 0)
        NAME(make_rest)(keys, block, 2, odd, &last, in, out, count);
}

#undef MANY
