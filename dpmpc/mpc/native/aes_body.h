/* The stream of aes.c by one kind of AES unit. */

/* Registers first .. first + n - 1 of the stream that begins at block `first`. */
INLINE void NAME(make)(const uint8_t *schedule, uint64_t first, VEC *b, const int n) {
    NAME(count)(first, b, n);
    NAME(encrypt)(b, n, schedule);
}

/* Words of a few registers that were not taken whole. */
INLINE void NAME(put_some)(const VEC *b, const int n, Py_ssize_t skip, const uint64_t *in, uint64_t *out, Py_ssize_t count) {
    uint64_t spare[8 * WIDTH];
    AES_EACH *(VEC *)(spare + i * WIDTH) = b[i];
    for (Py_ssize_t i = 0; i < count; i++) out[i] = in ? in[i] ^ spare[skip + i] : spare[skip + i];
}

TARGET static void NAME(stream)(const uint8_t *schedule, uint64_t position, const uint64_t *in, uint64_t *out, Py_ssize_t count) {
    VEC keys[11];
    for (int r = 0; r < 11; r++) keys[r] = ROUND_KEY(schedule + 16 * r);
    while (count > 0) {
        VEC b[8];
        const int n = 8;
        const Py_ssize_t skip = position & 1, most = (skip + count > 2 * WIDTH ? 8 * WIDTH : 2 * WIDTH) - skip;
        const Py_ssize_t take = most < count ? most : count;
        if (skip + count <= 2 * WIDTH) {
            NAME(make)(schedule, position / 2, b, 2);
            NAME(put_some)(b, 2, skip, in, out, take);
        } else {
            NAME(count)(position / 2, b, n);
            NAME(encrypt_under)(b, n, keys);
            if (take < n * WIDTH)
                NAME(put_some)(b, n, skip, in, out, take);
            else { /* whole: without a detour over memory */
                if (in) AES_EACH b[i] ^= *(const VEC *)(in + i * WIDTH);
                AES_EACH *(VEC *)(out + i * WIDTH) = b[i];
            }
        }
        in = in ? in + take : NULL;
        out += take, count -= take, position += (uint64_t)take;
    }
}
