/* AES-128 by one kind of unit, see aes_units.h: on registers side by side, for each round waits for the one before. */

#define AES_EACH _Pragma("GCC unroll 8") for (int i = 0; i < n; i++)

#if DPMPC_X86
/* The same under keys in registers. */
INLINE void NAME(encrypt_under)(VEC *b, const int n, const VEC *keys) {
    AES_EACH b[i] ^= keys[0];
    _Pragma("GCC unroll 9") for (int r = 1; r < 10; r++) AES_EACH b[i] = ENCRYPT(b[i], keys[r]);
    AES_EACH b[i] = ENCRYPT_LAST(b[i], keys[10]);
}

INLINE void NAME(encrypt)(VEC *b, const int n, const uint8_t *key) {
    AES_EACH b[i] ^= ROUND_KEY(key);
    for (int r = 1; r < 10; r++) {
        const VEC k = ROUND_KEY(key + 16 * r);
        AES_EACH b[i] = ENCRYPT(b[i], k);
    }
    const VEC k = ROUND_KEY(key + 160);
    AES_EACH b[i] = ENCRYPT_LAST(b[i], k);
}

INLINE void NAME(encrypt_two)(VEC *b, VEC *c, const int n, const uint8_t *key, const uint8_t *other) {
    AES_EACH b[i] ^= ROUND_KEY(key), c[i] ^= ROUND_KEY(other);
    for (int r = 1; r < 10; r++) {
        const VEC k = ROUND_KEY(key + 16 * r), l = ROUND_KEY(other + 16 * r);
        AES_EACH b[i] = ENCRYPT(b[i], k), c[i] = ENCRYPT(c[i], l);
    }
    const VEC k = ROUND_KEY(key + 160), l = ROUND_KEY(other + 160);
    AES_EACH b[i] = ENCRYPT_LAST(b[i], k), c[i] = ENCRYPT_LAST(c[i], l);
}

/* sum ^= the blocks b under a key, and next = sum ^ those under another, both without the last round key: the last round's
instruction adds one of two to its result. */
INLINE void NAME(add_streams)(VEC *sum, VEC *next, const VEC *b, const int n, const uint8_t *key, const uint8_t *other) {
    const VEC first = ROUND_KEY(key), second = ROUND_KEY(other);
    VEC x[8], y[8];
    AES_EACH x[i] = b[i] ^ first, y[i] = b[i] ^ second;
    for (int r = 1; r < 10; r++) {
        const VEC k = ROUND_KEY(key + 16 * r), l = ROUND_KEY(other + 16 * r);
        AES_EACH x[i] = ENCRYPT(x[i], k), y[i] = ENCRYPT(y[i], l);
    }
    AES_EACH sum[i] = ENCRYPT_LAST(x[i], sum[i]), next[i] = ENCRYPT_LAST(y[i], sum[i]);
}

INLINE void NAME(add_stream)(VEC *sum, const VEC *b, const int n, const uint8_t *key) {
    const VEC first = ROUND_KEY(key);
    VEC x[8];
    AES_EACH x[i] = b[i] ^ first;
    for (int r = 1; r < 10; r++) {
        const VEC k = ROUND_KEY(key + 16 * r);
        AES_EACH x[i] = ENCRYPT(x[i], k);
    }
    AES_EACH sum[i] = ENCRYPT_LAST(x[i], sum[i]);
}
#else
INLINE void NAME(encrypt_under)(VEC *b, const int n, const VEC *keys) {
    for (int r = 0; r < 9; r++) AES_EACH b[i] = (VEC)vaesmcq_u8(vaeseq_u8((uint8x16_t)b[i], (uint8x16_t)keys[r]));
    AES_EACH b[i] = (VEC)veorq_u8(vaeseq_u8((uint8x16_t)b[i], (uint8x16_t)keys[9]), (uint8x16_t)keys[10]);
}

INLINE void NAME(encrypt)(VEC *b, const int n, const uint8_t *key) {
    for (int r = 0; r < 9; r++) {
        const uint8x16_t k = vld1q_u8(key + 16 * r);
        AES_EACH b[i] = (VEC)vaesmcq_u8(vaeseq_u8((uint8x16_t)b[i], k)); /* here the key comes first in a round */
    }
    const uint8x16_t k = vld1q_u8(key + 144), last = vld1q_u8(key + 160);
    AES_EACH b[i] = (VEC)veorq_u8(vaeseq_u8((uint8x16_t)b[i], k), last);
}

INLINE void NAME(encrypt_two)(VEC *b, VEC *c, const int n, const uint8_t *key, const uint8_t *other) {
    NAME(encrypt)(b, n, key);
    NAME(encrypt)(c, n, other);
}

INLINE void NAME(add_stream)(VEC *sum, const VEC *b, const int n, const uint8_t *key) {
    VEC x[8];
    AES_EACH x[i] = b[i];
    for (int r = 0; r < 9; r++) {
        const uint8x16_t k = vld1q_u8(key + 16 * r);
        AES_EACH x[i] = (VEC)vaesmcq_u8(vaeseq_u8((uint8x16_t)x[i], k));
    }
    const uint8x16_t k = vld1q_u8(key + 144);
    AES_EACH sum[i] ^= (VEC)vaeseq_u8((uint8x16_t)x[i], k);
}

INLINE void NAME(add_streams)(VEC *sum, VEC *next, const VEC *b, const int n, const uint8_t *key, const uint8_t *other) {
    NAME(add_stream)(sum, b, n, key);
    AES_EACH next[i] = sum[i];
    NAME(add_stream)(next, b, n, other);
}
#endif

/* Registers b[0], b[1], ... of counters, from that of block `first` on: 16 bytes each, most significant first, of numbers
below 2^64. */
INLINE void NAME(count)(uint64_t first, VEC *b, const int n) {
    VEC number, step;
    for (int i = 0; i < WIDTH; i++) number[i] = i % 2 ? first + (uint64_t)i / 2 : 0, step[i] = i % 2 ? WIDTH / 2 : 0;
    AES_EACH b[i] = SWAP_BYTES(number), number += step;
}

/* Of each pair of words in a and b, the first ones, or the second ones, side by side. */
INLINE VEC NAME(firsts)(VEC a, VEC b) { return UNPACK(lo, a, b); }
INLINE VEC NAME(seconds)(VEC a, VEC b) { return UNPACK(hi, a, b); }
