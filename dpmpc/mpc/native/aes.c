/* The key stream of AES-128 in counter mode, from any word on. Twin and meaning: aes.py. Only with AES units: a table
of S-boxes would have secret addresses. */

#include "kernels.h"

#define BODY "aes_body.h"
#include "aes_units.h"

void aes_stream(const uint8_t *schedule, uint64_t position, const uint64_t *in, uint64_t *out, Py_ssize_t count) {
#ifndef NO_AES_UNIT
    CHOOSE_AES(stream)(schedule, position, in, out, count);
#else
    (void)schedule, (void)position, (void)in, (void)out, (void)count;
#endif
}

#if DPMPC_X86
#define AES_TARGET __attribute__((target("aes,sse4.1")))
/* SubBytes of four words alike: what the unit rotates it also gives unrotated. */
AES_TARGET static inline uint32_t substituted(uint32_t word) {
    return (uint32_t)_mm_cvtsi128_si32(_mm_aeskeygenassist_si128(_mm_set1_epi32((int)word), 0));
}
#elif DPMPC_ARM
#define AES_TARGET ARM_CRYPTO
/* With all four columns alike ShiftRows changes nothing. */
AES_TARGET static inline uint32_t substituted(uint32_t word) {
    return vgetq_lane_u32(vreinterpretq_u32_u8(vaeseq_u8(vreinterpretq_u8_u32(vdupq_n_u32(word)), vdupq_n_u8(0))), 0);
}
#endif

#ifndef NO_AES_UNIT
/* The round keys of AES-128: FIPS 197, 5.2. */
AES_TARGET void aes_expand(const uint8_t *key, uint8_t *schedule) {
    uint32_t w[4], rcon = 1;
    memcpy(w, key, 16);
    memcpy(schedule, w, 16);
    for (int round = 1; round < 11; round++) {
        const uint32_t s = substituted(w[3]);
        w[0] ^= (s >> 8 | s << 24) ^ rcon;
        for (int i = 1; i < 4; i++) w[i] ^= w[i - 1];
        memcpy(schedule + 16 * round, w, 16);
        rcon = (rcon << 1) ^ (rcon >> 7) * 0x11b;
    }
}
#else
void aes_expand(const uint8_t *key, uint8_t *schedule) { (void)key, (void)schedule; }
#endif

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
    aes_expand(a[0].view.buf, schedule);
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
