/* Half-gates by one kind of AES unit; see half_gates.c. A register holds the labels of WIDTH / 2 lanes. */

#define LANES (WIDTH / 2)

/* All ones where the label's lowest bit is 1. */
INLINE VEC NAME(colour)(VEC label) { return -(NAME(firsts)(label, label) & 1); }

/* H(x, i) = pi(pi(x) ^ i) ^ pi(x) of n registers; tweaks are of the lowest words. */
INLINE void NAME(hash)(VEC *x, const VEC *tweak, const int n, const uint8_t *schedule) {
    VEC once[8];
    NAME(encrypt)(x, n, schedule);
    AES_EACH once[i] = x[i], x[i] ^= tweak[i];
    NAME(encrypt)(x, n, schedule);
    AES_EACH x[i] ^= once[i];
}

/* 2 (number, number + 1, ...) + half. */
INLINE VEC NAME(tweaks)(uint64_t number, uint64_t half) {
    VEC v;
    for (int i = 0; i < WIDTH; i++) v[i] = i % 2 ? 0 : 2 * (number + (uint64_t)i / 2) + half;
    return v;
}

/* `lanes`, a multiple of what two registers hold, of an AND whose first lane here has that number. */
TARGET static void NAME(garble_row)(const uint64_t *a, const uint64_t *b, uint64_t *out, uint64_t *first, uint64_t *second, uint64_t number,
                                    Py_ssize_t lanes, const uint64_t *delta, const uint8_t *schedule) {
    VEC d;
    for (int i = 0; i < WIDTH; i++) d[i] = delta[i % 2];
    for (Py_ssize_t at = 0; at < 2 * lanes; at += 2 * WIDTH) {
        VEC x[8], tweak[8];
        _Pragma("GCC unroll 2") for (int j = 0; j < 2; j++) {
            const VEC left = *(const VEC *)(a + at + j * WIDTH), right = *(const VEC *)(b + at + j * WIDTH);
            x[4 * j] = left, x[4 * j + 1] = left ^ d, x[4 * j + 2] = right, x[4 * j + 3] = right ^ d;
            tweak[4 * j] = tweak[4 * j + 1] = NAME(tweaks)(number + (uint64_t)(at / 2 + j * LANES), 0);
            tweak[4 * j + 2] = tweak[4 * j + 3] = NAME(tweaks)(number + (uint64_t)(at / 2 + j * LANES), 1);
        }
        NAME(hash)(x, tweak, 8, schedule);
        _Pragma("GCC unroll 2") for (int j = 0; j < 2; j++) {
            const VEC left = *(const VEC *)(a + at + j * WIDTH), right = *(const VEC *)(b + at + j * WIDTH);
            const VEC one = x[4 * j] ^ x[4 * j + 1] ^ (NAME(colour)(right) & d), both = x[4 * j + 2] ^ x[4 * j + 3];
            *(VEC *)(first + at + j * WIDTH) = one;
            *(VEC *)(second + at + j * WIDTH) = both ^ left;
            *(VEC *)(out + at + j * WIDTH) =
                x[4 * j] ^ (NAME(colour)(left) & one) ^ x[4 * j + 2] ^ (NAME(colour)(right) & both);
        }
    }
}

/* The same of the label that is held, of what four registers hold. */
TARGET static void NAME(evaluate_row)(const uint64_t *a, const uint64_t *b, uint64_t *out, const uint64_t *first, const uint64_t *second,
                                      uint64_t number, Py_ssize_t lanes, const uint8_t *schedule) {
    for (Py_ssize_t at = 0; at < 2 * lanes; at += 4 * WIDTH) {
        VEC x[8], tweak[8];
        _Pragma("GCC unroll 4") for (int j = 0; j < 4; j++) {
            x[2 * j] = *(const VEC *)(a + at + j * WIDTH), x[2 * j + 1] = *(const VEC *)(b + at + j * WIDTH);
            tweak[2 * j] = NAME(tweaks)(number + (uint64_t)(at / 2 + j * LANES), 0);
            tweak[2 * j + 1] = NAME(tweaks)(number + (uint64_t)(at / 2 + j * LANES), 1);
        }
        NAME(hash)(x, tweak, 8, schedule);
        _Pragma("GCC unroll 4") for (int j = 0; j < 4; j++) {
            const VEC left = *(const VEC *)(a + at + j * WIDTH), right = *(const VEC *)(b + at + j * WIDTH);
            *(VEC *)(out + at + j * WIDTH) = x[2 * j] ^ x[2 * j + 1] ^ (NAME(colour)(left) & *(const VEC *)(first + at + j * WIDTH)) ^
                                             (NAME(colour)(right) & (*(const VEC *)(second + at + j * WIDTH) ^ left));
        }
    }
}

#undef LANES
