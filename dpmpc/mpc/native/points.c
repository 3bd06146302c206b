/* Sums of products mod p = 2^61 - 1 for the fold: inner products, and sums of products of two extensions at the points
{0, 1, infinity}^v. Twin and meaning: mersenne.py. */

#include "kernels.h"

/* Vectors go by value between inlined functions only, so no other compiler's convention for them matters. */
#pragma GCC diagnostic ignored "-Wpsabi"

#define P ((uint64_t)0x1FFFFFFFFFFFFFFF)
#define LOW30 (((uint64_t)1 << 30) - 1)
#define LOW31 (((uint64_t)1 << 31) - 1)
#define SIDE 32 /* products that are added up before they are reduced */
#define MOST_VARIABLES 8

#define BODY "points_body.h"
#include "variants.h"

static inline uint64_t residue(uint64_t x) {
    x = (x & P) + (x >> 61);
    return x - (P & -(uint64_t)(x >= P));
}

/* The sum of SIDE products of words below p. */
static uint64_t side_words(const uint64_t *x, const uint64_t *y) {
    uint128 sum = 0; /* below 32 times 2^122 */
    for (int j = 0; j < SIDE; j++) sum += (uint128)x[j] * y[j];
    sum = (sum & P) + (sum >> 61); /* below 2^67 */
    return residue((uint64_t)(sum & P) + (uint64_t)(sum >> 61));
}

#if DPMPC_X86
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))

AVX512 static inline words8 low_product(words8 a, words8 b) { return (words8)_mm512_mul_epu32((__m512i)a, (__m512i)b); }

/* As `side_words`, by halves of 31 and 30 bits: four products of halves can be added up before they are reduced. */
AVX512 static uint64_t side_avx512(const uint64_t *x, const uint64_t *y) {
    words8 low = {0}, middle = {0}, high = {0};
    for (int j = 0; j < SIDE; j += 8) {
        words8 a, b;
        memcpy(&a, x + j, 64);
        memcpy(&b, y + j, 64);
        words8 a1 = a >> 31, b1 = b >> 31;
        a &= LOW31, b &= LOW31;
        low += low_product(a, b);
        middle += low_product(a1, b) + low_product(a, b1);
        high += low_product(a1, b1);
    }
    /* low < 2^64, middle < 2^64, high < 2^62: 2^31 middle = (middle mod 2^30) 2^31 + middle >> 30, 2^62 high = 2 high */
    words8 sum = (low & P) + (low >> 61) + ((middle & LOW30) << 31) + (middle >> 30) + ((high << 1) & P) + (high >> 60);
    sum = (sum & P) + (sum >> 61);                  /* below 2^61 + 4: seven of them fit a word */
    return residue(residue(sum[0] + sum[1] + sum[2] + sum[3]) + residue(sum[4] + sum[5] + sum[6] + sum[7]));
}
#define SUM_OF_SIDE(x, y) (HAS(HAS_AVX512) ? side_avx512(x, y) : side_words(x, y))
#else
#define SUM_OF_SIDE(x, y) side_words(x, y)
#endif

static uint64_t inner_product(const uint64_t *x, const uint64_t *y, Py_ssize_t count) {
    uint64_t sum = 0, a[SIDE] = {0}, b[SIDE] = {0};
    Py_ssize_t i = 0;
    for (; i + SIDE <= count; i += SIDE) sum = residue(sum + SUM_OF_SIDE(x + i, y + i));
    memcpy(a, x + i, (size_t)(count - i) * 8);
    memcpy(b, y + i, (size_t)(count - i) * 8);
    return residue(sum + SUM_OF_SIDE(a, b));
}

/* out[k] = the sum over columns of the products of both extensions at point k; `scratch` holds 2 * points * SIDE words. */
static void point_sums(const uint64_t *u, const uint64_t *w, uint64_t *out, int v, Py_ssize_t points, Py_ssize_t columns, uint64_t *scratch) {
    uint64_t *f = scratch, *g = scratch + points * SIDE;
    memset(out, 0, (size_t)points * 8);
    for (Py_ssize_t at = 0; at < columns; at += SIDE) {
        Py_ssize_t width = columns - at < SIDE ? columns - at : SIDE;
        CHOOSE(extend)(u, f, v, columns, at, width);
        CHOOSE(extend)(w, g, v, columns, at, width);
        for (Py_ssize_t k = 0; k < points; k++) out[k] = residue(out[k] + SUM_OF_SIDE(f + k * SIDE, g + k * SIDE));
    }
}

static PyObject *fail(array *arrays, int count) {
    give_back(arrays, count);
    return NULL;
}

static PyObject *inner(PyObject *self, PyObject *args) {
    PyObject *x, *y;
    array a[2] = {0};
    uint64_t sum;
    (void)self;
    if (!PyArg_ParseTuple(args, "OO", &x, &y)) return NULL;
    if (take(&a[0], x, "x", 'Q', 0, 0) || take(&a[1], y, "y", 'Q', 0, 0)) return fail(a, 2);
    if (a[0].count != a[1].count) {
        PyErr_Format(PyExc_ValueError, "x and y must hold as many words; got %zd and %zd", a[0].count, a[1].count);
        return fail(a, 2);
    }
    Py_BEGIN_ALLOW_THREADS
    sum = inner_product(a[0].view.buf, a[1].view.buf, a[0].count);
    Py_END_ALLOW_THREADS
    give_back(a, 2);
    return PyLong_FromUnsignedLongLong(sum);
}

static PyObject *points(PyObject *self, PyObject *args) {
    PyObject *u, *w, *out;
    Py_ssize_t columns, number = 1;
    int v;
    array a[3] = {0};
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOin", &u, &w, &out, &v, &columns)) return NULL;
    if (v < 1 || v > MOST_VARIABLES || columns < 0 || columns > PY_SSIZE_T_MAX >> (MOST_VARIABLES + 3))
        return PyErr_Format(PyExc_ValueError, "1 to %d variables are extended, of columns that fit memory; got %d, %zd", MOST_VARIABLES, v,
                            columns);
    for (int k = 0; k < v; k++) number *= 3;
    if (take(&a[0], u, "u", 'Q', 0, 0) || take(&a[1], w, "v", 'Q', 0, 0) || take(&a[2], out, "out", 'Q', 1, 0) ||
        apart(&a[0], &a[2], "u and out") || apart(&a[1], &a[2], "v and out"))
        return fail(a, 3);
    if (a[0].count != columns << v || a[1].count != columns << v || a[2].count != number) {
        PyErr_Format(PyExc_ValueError, "u and v must hold %zd words, and out %zd; got %zd, %zd, %zd", columns << v, number, a[0].count,
                     a[1].count, a[2].count);
        return fail(a, 3);
    }
    uint64_t *scratch = PyMem_Malloc((size_t)number * 2 * SIDE * 8);
    if (!scratch) {
        PyErr_NoMemory();
        return fail(a, 3);
    }
    Py_BEGIN_ALLOW_THREADS
    point_sums(a[0].view.buf, a[1].view.buf, a[2].view.buf, v, number, columns, scratch);
    Py_END_ALLOW_THREADS
    PyMem_Free(scratch);
    give_back(a, 3);
    Py_RETURN_NONE;
}

static PyMethodDef METHODS[] = {
    {"inner", inner, METH_VARARGS, "inner(x, y): the sum of x y, mod 2^61 - 1."},
    {"points", points, METH_VARARGS, "points(u, v, out, variables, columns): out = sums of products at {0, 1, infinity}^variables."},
    {NULL, NULL, 0, NULL},
};

int add_points(PyObject *module) { return PyModule_AddFunctions(module, METHODS); }
