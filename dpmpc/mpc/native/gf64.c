/* The field GF(2^64) = F_2[X] / (X^64 + X^4 + X^3 + X + 1), and what the check of ANDs does with it. Twin and meaning:
gf64.py.

Arrays are blocks of rows of eight words: word i of row r of block b is at (b rows + r) 8 + i, and belongs to column
8 b + i. Compiled three times: for carry-less products of 512 and of 128 bits, and without them. Factors and weights are
public coins; where they choose an address, they alone do. */

#include "kernels.h"

#pragma GCC diagnostic ignored "-Wpsabi" /* vectors are passed among functions of this file alone */

#define MOST 6
#define GROUP 4 /* blocks that are worked on together */
static const int POWERS[MOST + 1] = {1, 3, 9, 27, 81, 243, 729};

/* -- products by holes: every fifth bit, so that at most 13 ones are added up in five bits ------------------------------ */
typedef struct {
    uint64_t low, high;
} wide_word;

static inline wide_word by_holes(uint64_t a, uint64_t b) {
    const uint64_t hole = 0x1084210842108421u; /* bits 0, 5, ..., 60 */
    uint64_t x[5], y[5];
    uint128 sum[5] = {0};
    for (int k = 0; k < 5; k++) x[k] = a & (hole << k), y[k] = b & (hole << k);
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 5; j++) sum[(i + j) % 5] ^= (uint128)x[i] * y[j];
    uint128 total = 0, mask = 0;
    for (int k = 0; k < 128; k += 5) mask |= (uint128)1 << k;
    for (int k = 0; k < 5; k++) total |= sum[k] & (mask << k);
    return (wide_word){(uint64_t)total, (uint64_t)(total >> 64)};
}

#define TARGET
#define NAME(f) f##_portable
#define PRODUCTS wide_word
#define ADD(sum, a, b) sum = add_portable(sum, a, b)
static inline wide_word nothing_portable(void) { return (wide_word){0, 0}; }
static wide_word add_portable(wide_word sum, words8 a, words8 b) {
    for (int i = 0; i < 8; i++) {
        wide_word z = by_holes(a[i], b[i]);
        sum.low ^= z.low, sum.high ^= z.high;
    }
    return sum;
}
static inline void close_portable(wide_word sum, uint64_t *low, uint64_t *high) { *low = sum.low, *high = sum.high; }
static inline void wide_portable(words8 a, words8 b, words8 *low, words8 *high) {
    for (int i = 0; i < 8; i++) {
        wide_word z = by_holes(a[i], b[i]);
        (*low)[i] = z.low, (*high)[i] = z.high;
    }
}
#include "gf64_body.h"

#if DPMPC_X86
/* -- 128 bits ---------------------------------------------------------------------------------------------------------- */
#define TARGET __attribute__((target("pclmul,sse4.1")))
#define NAME(f) f##_pclmul
#define PRODUCTS __m128i
#define ADD(sum, a, b) sum = add_pclmul(sum, a, b)
TARGET static inline __m128i nothing_pclmul(void) { return _mm_setzero_si128(); }
TARGET static inline __attribute__((always_inline)) __m128i add_pclmul(__m128i sum, words8 a, words8 b) {
    union {
        words8 w;
        __m128i v[4];
    } x = {a}, y = {b};
    for (int i = 0; i < 4; i++) {
        sum = _mm_xor_si128(sum, _mm_clmulepi64_si128(x.v[i], y.v[i], 0x00));
        sum = _mm_xor_si128(sum, _mm_clmulepi64_si128(x.v[i], y.v[i], 0x11));
    }
    return sum;
}
TARGET static inline void close_pclmul(__m128i sum, uint64_t *low, uint64_t *high) {
    *low = (uint64_t)_mm_extract_epi64(sum, 0);
    *high = (uint64_t)_mm_extract_epi64(sum, 1);
}
TARGET static inline __attribute__((always_inline)) void wide_pclmul(words8 a, words8 b, words8 *low, words8 *high) {
    union {
        words8 w;
        __m128i v[4];
    } x = {a}, y = {b}, l, h;
    for (int i = 0; i < 4; i++) {
        __m128i even = _mm_clmulepi64_si128(x.v[i], y.v[i], 0x00), odd = _mm_clmulepi64_si128(x.v[i], y.v[i], 0x11);
        l.v[i] = _mm_unpacklo_epi64(even, odd);
        h.v[i] = _mm_unpackhi_epi64(even, odd);
    }
    *low = l.w, *high = h.w;
}
#include "gf64_body.h"

/* -- 512 bits ---------------------------------------------------------------------------------------------------------- */
#define TARGET __attribute__((target("vpclmulqdq,pclmul,avx512f,avx512bw,avx512dq,avx512vl")))
#define NAME(f) f##_vpclmul
#define PRODUCTS __m512i
#define ADD(sum, a, b)                                                                                                      \
    sum = _mm512_ternarylogic_epi64(sum, _mm512_clmulepi64_epi128((__m512i)(a), (__m512i)(b), 0x00),                        \
                                    _mm512_clmulepi64_epi128((__m512i)(a), (__m512i)(b), 0x11), 0x96)
TARGET static inline __m512i nothing_vpclmul(void) { return _mm512_setzero_si512(); }
TARGET static inline void close_vpclmul(__m512i sum, uint64_t *low, uint64_t *high) {
    uint64_t words[8];
    _mm512_storeu_si512(words, sum);
    *low = words[0] ^ words[2] ^ words[4] ^ words[6];
    *high = words[1] ^ words[3] ^ words[5] ^ words[7];
}
TARGET static inline __attribute__((always_inline)) void wide_vpclmul(words8 a, words8 b, words8 *low, words8 *high) {
    __m512i even = _mm512_clmulepi64_epi128((__m512i)a, (__m512i)b, 0x00), odd = _mm512_clmulepi64_epi128((__m512i)a, (__m512i)b, 0x11);
    *low = (words8)_mm512_unpacklo_epi64(even, odd);
    *high = (words8)_mm512_unpackhi_epi64(even, odd);
}
#include "gf64_body.h"

#define CHOOSE(f) (HAS(HAS_VPCLMUL | HAS_PCLMUL | HAS_AVX512) ? f##_vpclmul : HAS(HAS_PCLMUL) ? f##_pclmul : f##_portable)
#else
#define CHOOSE(f) f##_portable
#endif

static int power_of_two(Py_ssize_t rows) {
    for (int v = 0; v <= MOST; v++)
        if (rows == (Py_ssize_t)1 << v) return v;
    PyErr_Format(PyExc_ValueError, "blocks have 1, 2, 4, ... 64 rows; got %zd", rows);
    return -1;
}

static int whole_blocks(Py_ssize_t words, Py_ssize_t rows, Py_ssize_t weights, int weighted) {
    if (words % (8 * rows) == 0 && (!weighted || weights == words / rows)) return 0;
    PyErr_Format(PyExc_ValueError, "words come in blocks of %zd rows of 8, with a weight a column; got %zd and %zd weights", rows, words,
                 weights);
    return -1;
}

static PyObject *gf_multiply(PyObject *self, PyObject *args) {
    PyObject *x, *y, *out, *result = NULL;
    array a[3] = {0};
    (void)self;
    if (!PyArg_ParseTuple(args, "OOO", &x, &y, &out)) return NULL;
    if (take(&a[0], x, "a", 'Q', 0, 0) || take(&a[1], y, "b", 'Q', 0, 0) || take(&a[2], out, "out", 'Q', 1, 0) ||
        apart(&a[0], &a[2], "a and out") || apart(&a[1], &a[2], "b and out"))
        goto done;
    if (a[0].count != a[2].count || a[1].count != a[2].count) {
        PyErr_Format(PyExc_ValueError, "a, b and out must be of one size; got %zd, %zd and %zd", a[0].count, a[1].count, a[2].count);
        goto done;
    }
    Py_BEGIN_ALLOW_THREADS
    CHOOSE(multiply)(a[0].view.buf, a[1].view.buf, a[2].view.buf, a[2].count);
    Py_END_ALLOW_THREADS
    result = Py_None;
    Py_INCREF(result);
done:
    give_back(a, 3);
    return result;
}

static PyObject *gf_sums(PyObject *self, PyObject *args) {
    PyObject *x, *y, *weights, *out, *result = NULL;
    array a[4] = {0};
    int v;
    void *sums = NULL;
    char *spare = NULL;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOiOO", &x, &y, &v, &weights, &out)) return NULL;
    if (take(&a[0], x, "x", 'Q', 0, 0) || take(&a[1], y, "y", 'Q', 0, 0) || take(&a[2], weights, "weights", 'Q', 0, 0) ||
        take(&a[3], out, "out", 'Q', 1, 0))
        goto done;
    for (int k = 0; k < 3; k++)
        if (apart(&a[k], &a[3], "out and what goes in")) goto done;
    Py_ssize_t words = a[0].count / 2;
    if (v < 0 || v > MOST || a[0].count != 2 * words || a[1].count != a[0].count || a[3].count != POWERS[v]) {
        PyErr_Format(PyExc_ValueError, "x and y have two components, and out 3^v words for v of 0 .. 6; got %zd, %zd, %zd and %d",
                     a[0].count, a[1].count, a[3].count, v);
        goto done;
    }
    if (whole_blocks(words, (Py_ssize_t)1 << v, a[2].count, a[2].count != 0)) goto done;
    sums = PyMem_Calloc(POWERS[MOST] + 1, 64);
    spare = PyMem_Calloc((GROUP + 4) * (1 << MOST) + 1, 64); /* the roots' rows, and four arrays of 32 + 16 + ... rows */
    if (!sums || !spare) {
        PyErr_NoMemory();
        goto done;
    }
    void *aligned = (void *)(((uintptr_t)sums + 63) / 64 * 64), *near = (void *)(((uintptr_t)spare + 63) / 64 * 64);
    const uint64_t *w = a[2].count ? a[2].view.buf : NULL;
    Py_BEGIN_ALLOW_THREADS
    CHOOSE(sums)(a[0].view.buf, a[1].view.buf, words, v, w, near, aligned, a[3].view.buf);
    Py_END_ALLOW_THREADS
    result = Py_None;
    Py_INCREF(result);
done:
    PyMem_Free(sums);
    PyMem_Free(spare);
    give_back(a, 4);
    return result;
}

static PyObject *gf_fold(PyObject *self, PyObject *args) {
    PyObject *words, *factors, *result = NULL;
    array a[2] = {0};
    (void)self;
    if (!PyArg_ParseTuple(args, "OO", &words, &factors)) return NULL;
    if (take(&a[0], words, "words", 'Q', 1, 0) || take(&a[1], factors, "factors", 'Q', 0, 1) || apart(&a[0], &a[1], "words and factors"))
        goto done;
    if (power_of_two(a[1].count) < 0 || whole_blocks(a[0].count, a[1].count, 0, 0)) goto done;
    Py_BEGIN_ALLOW_THREADS
    CHOOSE(fold)(a[0].view.buf, a[1].view.buf, (int)a[1].count, a[0].count);
    Py_END_ALLOW_THREADS
    result = Py_None;
    Py_INCREF(result);
done:
    give_back(a, 2);
    return result;
}

static PyObject *gf_fold_bits(PyObject *self, PyObject *args) {
    PyObject *words, *factors, *weights, *result = NULL;
    array a[3] = {0};
    uint8_t where[16][64] = {{0}};
    (void)self;
    if (!PyArg_ParseTuple(args, "OOO", &words, &factors, &weights)) return NULL;
    if (take(&a[0], words, "words", 'Q', 1, 0) || take(&a[1], factors, "factors", 'Q', 0, 64) ||
        take(&a[2], weights, "weights", 'Q', 0, 0) || apart(&a[0], &a[1], "words and factors") ||
        apart(&a[0], &a[2], "words and weights"))
        goto done;
    if (a[1].count != 64) {
        PyErr_Format(PyExc_ValueError, "there are 64 factors; got %zd", a[1].count);
        goto done;
    }
    if (whole_blocks(a[0].count, 64, a[2].count, a[2].count != 0)) goto done;
    const uint64_t *f = a[1].view.buf, *w = a[2].count ? a[2].view.buf : NULL;
    for (int r = 0; r < 64; r++)
        for (int b = 0; b < 64; b++) where[r / 4][b] |= (uint8_t)((f[r] >> b & 1) << r % 4);
    Py_BEGIN_ALLOW_THREADS
    CHOOSE(fold_bits)(a[0].view.buf, (const uint8_t(*)[64])where, a[0].count, w);
    Py_END_ALLOW_THREADS
    result = Py_None;
    Py_INCREF(result);
done:
    give_back(a, 3);
    return result;
}

static PyObject *gf_claim(PyObject *self, PyObject *args) {
    PyObject *z, *weights, *out, *result = NULL;
    array a[3] = {0};
    void *sums = NULL;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOO", &z, &weights, &out)) return NULL;
    if (take(&a[0], z, "z", 'Q', 0, 0) || take(&a[1], weights, "weights", 'Q', 0, 0) || take(&a[2], out, "out", 'Q', 1, 1) ||
        apart(&a[0], &a[2], "z and out") || apart(&a[1], &a[2], "weights and out"))
        goto done;
    if (power_of_two(a[2].count) < 0 || whole_blocks(a[0].count, a[2].count, a[1].count, 1)) goto done;
    sums = PyMem_Calloc((1 << MOST) + 1, 64);
    if (!sums) {
        PyErr_NoMemory();
        goto done;
    }
    void *aligned = (void *)(((uintptr_t)sums + 63) / 64 * 64);
    Py_BEGIN_ALLOW_THREADS
    CHOOSE(claim)(a[0].view.buf, a[1].view.buf, (int)a[2].count, aligned, a[2].view.buf, a[0].count);
    Py_END_ALLOW_THREADS
    result = Py_None;
    Py_INCREF(result);
done:
    PyMem_Free(sums);
    give_back(a, 3);
    return result;
}

static PyMethodDef METHODS[] = {
    {"gf_multiply", gf_multiply, METH_VARARGS, "gf_multiply(a, b, out): products, one by one."},
    {"gf_sums", gf_sums, METH_VARARGS, "gf_sums(x, y, v, weights, out): sums at the points {0, 1, infinity}^v."},
    {"gf_fold", gf_fold, METH_VARARGS, "gf_fold(words, factors): sums of rows times factors, to the front of words."},
    {"gf_fold_bits", gf_fold_bits, METH_VARARGS, "gf_fold_bits(words, factors, weights): the same of bits, in place."},
    {"gf_claim", gf_claim, METH_VARARGS, "gf_claim(z, weights, out): of each row, its sum with weights."},
    {NULL, NULL, 0, NULL},
};

int add_gf64(PyObject *module) { return PyModule_AddFunctions(module, METHODS); }
