/* The key stream of AES-128 in counter mode, from any word on. Twin and meaning: aes.py. Only with AES units: a table
of S-boxes would have secret addresses. */

#include "kernels.h"

#define ROUNDS 10

#if DPMPC_X86
#define AES_TARGET __attribute__((target("aes,ssse3")))
#define VAES_TARGET __attribute__((target("vaes,avx512f,avx512bw")))

AES_TARGET static inline __m128i next_key(__m128i key, __m128i assist) {
    assist = _mm_shuffle_epi32(assist, 0xff);
    key = _mm_xor_si128(key, _mm_slli_si128(key, 4));
    key = _mm_xor_si128(key, _mm_slli_si128(key, 8)); /* = key ^ key << 32 ^ key << 64 ^ key << 96 */
    return _mm_xor_si128(key, assist);
}

AES_TARGET static void expand(const uint8_t *key, uint8_t *schedule) {
    __m128i k = _mm_loadu_si128((const __m128i *)key);
    _mm_storeu_si128((__m128i *)schedule, k);
#define ROUND(i, rcon)                                      \
    k = next_key(k, _mm_aeskeygenassist_si128(k, rcon));    \
    _mm_storeu_si128((__m128i *)schedule + i, k);
    ROUND(1, 0x01) ROUND(2, 0x02) ROUND(3, 0x04) ROUND(4, 0x08) ROUND(5, 0x10)
    ROUND(6, 0x20) ROUND(7, 0x40) ROUND(8, 0x80) ROUND(9, 0x1b) ROUND(10, 0x36)
#undef ROUND
}

#define CHUNK 32 /* words that are made at a time: 16 blocks */

/* Blocks first .. first + 15; the counter is the block's number, 16 bytes, most significant first. */
AES_TARGET static void chunk_aes(const uint8_t *schedule, uint64_t first, uint64_t *out) {
    const __m128i swap = _mm_set_epi8(8, 9, 10, 11, 12, 13, 14, 15, 7, 6, 5, 4, 3, 2, 1, 0);
    for (int half = 0; half < 2; half++) {
        __m128i b[8], k = _mm_loadu_si128((const __m128i *)schedule);
        for (int i = 0; i < 8; i++)
            b[i] = _mm_xor_si128(_mm_shuffle_epi8(_mm_set_epi64x((long long)(first + 8 * half + i), 0), swap), k);
        for (int r = 1; r < ROUNDS; r++) {
            k = _mm_loadu_si128((const __m128i *)schedule + r);
            for (int i = 0; i < 8; i++) b[i] = _mm_aesenc_si128(b[i], k);
        }
        k = _mm_loadu_si128((const __m128i *)schedule + ROUNDS);
        for (int i = 0; i < 8; i++) _mm_storeu_si128((__m128i *)(out + 16 * half) + i, _mm_aesenclast_si128(b[i], k));
    }
}

static inline void put(const uint64_t *made, const uint64_t *in, uint64_t *out, Py_ssize_t count) {
    for (Py_ssize_t i = 0; i < count; i++) out[i] = in ? in[i] ^ made[i] : made[i];
}

AES_TARGET static void stream_aes(const uint8_t *schedule, uint64_t position, const uint64_t *in, uint64_t *out, Py_ssize_t count) {
    while (count > 0) {
        uint64_t spare[CHUNK];
        Py_ssize_t skip = position & 1, take = CHUNK - skip < count ? CHUNK - skip : count;
        chunk_aes(schedule, position / 2, spare);
        put(spare + skip, in, out, take);
        in = in ? in + take : NULL;
        out += take, count -= take, position += (uint64_t)take;
    }
}

VAES_TARGET static void stream_vaes(const uint8_t *schedule, uint64_t position, const uint64_t *in, uint64_t *out, Py_ssize_t count) {
    const __m512i swap = _mm512_broadcast_i32x4(_mm_set_epi8(8, 9, 10, 11, 12, 13, 14, 15, 7, 6, 5, 4, 3, 2, 1, 0));
    const __m512i step = _mm512_set_epi64(4, 0, 4, 0, 4, 0, 4, 0);
    __m512i k[ROUNDS + 1];
    for (int r = 0; r <= ROUNDS; r++) k[r] = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)schedule + r));
    while (count > 0) {
        uint64_t spare[CHUNK];
        Py_ssize_t skip = position & 1, take = CHUNK - skip < count ? CHUNK - skip : count;
        long long first = (long long)(position / 2);
        __m512i c = _mm512_set_epi64(first + 3, 0, first + 2, 0, first + 1, 0, first, 0), b[4];
        for (int i = 0; i < 4; i++, c = _mm512_add_epi64(c, step)) b[i] = _mm512_xor_si512(_mm512_shuffle_epi8(c, swap), k[0]);
        for (int r = 1; r < ROUNDS; r++)
            for (int i = 0; i < 4; i++) b[i] = _mm512_aesenc_epi128(b[i], k[r]);
        for (int i = 0; i < 4; i++) b[i] = _mm512_aesenclast_epi128(b[i], k[ROUNDS]);
        if (take == CHUNK) { /* whole: without a detour over memory */
            for (int i = 0; i < 4; i++) {
                if (in) b[i] = _mm512_xor_si512(b[i], _mm512_loadu_si512(in + 8 * i));
                _mm512_storeu_si512(out + 8 * i, b[i]);
            }
        } else {
            for (int i = 0; i < 4; i++) _mm512_storeu_si512(spare + 8 * i, b[i]);
            put(spare + skip, in, out, take);
        }
        in = in ? in + take : NULL;
        out += take, count -= take, position += (uint64_t)take;
    }
}
#endif

void aes_stream(const uint8_t *schedule, uint64_t position, const uint64_t *in, uint64_t *out, Py_ssize_t count) {
#if DPMPC_X86
    if (HAS(HAS_VAES | HAS_AVX512))
        stream_vaes(schedule, position, in, out, count);
    else
        stream_aes(schedule, position, in, out, count);
#else
    (void)schedule, (void)position, (void)in, (void)out, (void)count; /* never called: take_schedule refuses */
#endif
}

int take_schedule(array *a, PyObject *object) {
    if (!HAS(HAS_AES)) {
        PyErr_SetString(PyExc_RuntimeError, "this processor has no AES unit that may be used");
        return -1;
    }
    return take(a, object, "schedule", 'B', 0, AES_SCHEDULE);
}

static PyObject *aes_schedule(PyObject *self, PyObject *args) {
    PyObject *key;
    array a[1] = {0};
    uint8_t schedule[AES_SCHEDULE] = {0};
    (void)self;
    if (!PyArg_ParseTuple(args, "O", &key)) return NULL;
    if (!HAS(HAS_AES)) return PyErr_Format(PyExc_RuntimeError, "this processor has no AES unit that may be used");
    if (take(&a[0], key, "key", 'B', 0, 16)) return NULL;
    if (a[0].count != 16) {
        PyErr_Format(PyExc_ValueError, "key must hold 16 bytes; got %zd", a[0].count);
        give_back(a, 1);
        return NULL;
    }
#if DPMPC_X86
    expand(a[0].view.buf, schedule);
#endif
    give_back(a, 1);
    return PyBytes_FromStringAndSize((const char *)schedule, sizeof schedule);
}

static PyObject *aes_words(PyObject *self, PyObject *args) {
    PyObject *schedule, *out;
    unsigned long long position;
    array a[2] = {0};
    (void)self;
    if (!PyArg_ParseTuple(args, "OKO", &schedule, &position, &out)) return NULL;
    if (take_schedule(&a[0], schedule) || take(&a[1], out, "out", 'Q', 1, 0) ||
        apart(&a[0], &a[1], "schedule and out")) {
        give_back(a, 2);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    aes_stream(a[0].view.buf, position, NULL, a[1].view.buf, a[1].count);
    Py_END_ALLOW_THREADS
    give_back(a, 2);
    Py_RETURN_NONE;
}

static PyMethodDef METHODS[] = {
    {"aes_schedule", aes_schedule, METH_VARARGS, "aes_schedule(key): the 11 round keys of AES-128."},
    {"aes_words", aes_words, METH_VARARGS, "aes_words(schedule, position, out): the key stream from its word `position` on."},
    {NULL, NULL, 0, NULL},
};

int add_aes(PyObject *module) { return PyModule_AddFunctions(module, METHODS); }
