/* Keyed BLAKE2b of many short texts: by which rows are assigned to parts. Key and texts decide no jump and no address; the
texts' lengths, ids on their owner's machine, decide how long it takes. */

#include "kernels.h"

#define BLOCK 128 /* bytes */
#define ROUNDS 12
#define LEAST_KEY 1
#define MOST_KEY 64

static const uint64_t START[8] = {
    0x6a09e667f3bcc908u, 0xbb67ae8584caa73bu, 0x3c6ef372fe94f82bu, 0xa54ff53a5f1d36f1u,
    0x510e527fade682d1u, 0x9b05688c2b3e6c1fu, 0x1f83d9abfb41bd6bu, 0x5be0cd19137e2179u,
};
static const uint8_t ORDER[10][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4}, {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13}, {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11}, {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5}, {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
};

static inline uint64_t turned(uint64_t x, int right) { return x >> right | x << (64 - right); }

#define MIX(a, b, c, d, x, y)                                                                                                    \
    do {                                                                                                                         \
        v[a] += v[b] + (x), v[d] = turned(v[d] ^ v[a], 32);                                                                      \
        v[c] += v[d], v[b] = turned(v[b] ^ v[c], 24);                                                                            \
        v[a] += v[b] + (y), v[d] = turned(v[d] ^ v[a], 16);                                                                      \
        v[c] += v[d], v[b] = turned(v[b] ^ v[c], 63);                                                                            \
    } while (0)

/* The compression function F of RFC 7693, section 3.2, on a whole block; `done` bytes went in with it and before it. */
static void compress(uint64_t state[8], const uint8_t block[BLOCK], uint64_t done, int last) {
    uint64_t v[16], m[16];
    memcpy(m, block, BLOCK);
    memcpy(v, state, 64);
    memcpy(v + 8, START, 64);
    v[12] ^= done;
    if (last) v[14] = ~v[14];
#pragma GCC unroll 12 /* the order is then known when this is compiled */
    for (int round = 0; round < ROUNDS; round++) {
        const uint8_t *s = ORDER[round % 10];
        MIX(0, 4, 8, 12, m[s[0]], m[s[1]]);
        MIX(1, 5, 9, 13, m[s[2]], m[s[3]]);
        MIX(2, 6, 10, 14, m[s[4]], m[s[5]]);
        MIX(3, 7, 11, 15, m[s[6]], m[s[7]]);
        MIX(0, 5, 10, 15, m[s[8]], m[s[9]]);
        MIX(1, 6, 11, 12, m[s[10]], m[s[11]]);
        MIX(2, 7, 8, 13, m[s[12]], m[s[13]]);
        MIX(3, 4, 9, 14, m[s[14]], m[s[15]]);
    }
    for (int k = 0; k < 8; k++) state[k] ^= v[k] ^ v[k + 8];
}

/* The first word of the digest of a text of `length` bytes above 0, after a whole block of the key. */
static uint64_t hashed(const uint64_t keyed[8], const uint8_t *text, uint64_t length) {
    uint64_t state[8], done = BLOCK;
    uint8_t block[BLOCK];
    memcpy(state, keyed, sizeof state);
    for (; length > BLOCK; text += BLOCK, length -= BLOCK) compress(state, text, done += BLOCK, 0);
    memset(block, 0, BLOCK);
    memcpy(block, text, length);
    compress(state, block, done + length, 1);
    return state[0];
}

static PyObject *keyed_hashes(PyObject *self, PyObject *args) {
    PyObject *objects[4], *result = NULL;
    array a[4] = {{{0}, 0}};
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOO", objects, objects + 1, objects + 2, objects + 3)) return NULL;
    if (take(a, objects[0], "key", 'B', 0, LEAST_KEY) || take(a + 1, objects[1], "texts", 'B', 0, 0) ||
        take(a + 2, objects[2], "ends", 'Q', 0, 0) || take(a + 3, objects[3], "out", 'Q', 1, a[2].count) ||
        apart(a + 3, a + 2, "out and ends") || apart(a + 3, a + 1, "out and texts"))
        goto end;
    const uint8_t *texts = a[1].view.buf;
    const uint64_t *ends = a[2].view.buf;
    uint64_t *out = a[3].view.buf;
    if (a[0].count > MOST_KEY) {
        PyErr_Format(PyExc_ValueError, "a key has at most %d bytes; got %zd", MOST_KEY, a[0].count);
        goto end;
    }
    for (Py_ssize_t k = 0; k < a[2].count; k++)
        if (ends[k] <= (k ? ends[k - 1] : 0) || ends[k] > (uint64_t)a[1].count) {
            PyErr_SetString(PyExc_ValueError, "ends must rise from above 0, up to the length of the texts");
            goto end;
        }
    Py_BEGIN_ALLOW_THREADS;
    uint64_t keyed[8], begin = 0;
    uint8_t block[BLOCK] = {0};
    memcpy(keyed, START, sizeof keyed);
    keyed[0] ^= 0x01010000u ^ (uint64_t)a[0].count << 8 ^ 8; /* a digest of 8 bytes; a tree of one leaf */
    memcpy(block, a[0].view.buf, (size_t)a[0].count);
    compress(keyed, block, BLOCK, 0);
    for (Py_ssize_t k = 0; k < a[2].count; begin = ends[k++]) out[k] = hashed(keyed, texts + begin, ends[k] - begin);
    Py_END_ALLOW_THREADS;
    result = Py_NewRef(Py_None);
end:
    give_back(a, 4);
    return result;
}

static PyMethodDef METHODS[] = {
    {"keyed_hashes", keyed_hashes, METH_VARARGS,
     "keyed_hashes(key, texts, ends, out): out[k] = BLAKE2b, of 8 bytes and with the key, of the text that ends at ends[k]."},
    {NULL, NULL, 0, NULL},
};

int add_hashes(PyObject *module) { return PyModule_AddFunctions(module, METHODS); }
