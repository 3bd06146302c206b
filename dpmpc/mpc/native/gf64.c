/* The field GF(2^64) = F_2[X] / (X^64 + X^4 + X^3 + X + 1), and what checks do with it. Twin and meaning:
gf64.py.

Arrays are blocks of rows of eight words: word i of row r of block b is at (b rows + r) 8 + i, and belongs to column
8 b + i. Factors and weights are public coins; where they choose an address, they alone do. */

#include "kernels.h"

#pragma GCC diagnostic ignored "-Wpsabi" /* vectors are passed among functions of this file alone */

#define MOST 6
static const int POWERS[MOST + 1] = {1, 3, 9, 27, 81, 243, 729};

/* Which components of y each component of x is multiplied with; one more, of none, where components are odd. */
enum { MOST_COMPS = 16 };
typedef struct {
    int count, of[MOST_COMPS];
} terms;
typedef struct {
    int comps;
    terms of[MOST_COMPS + 1];
} rights;

/* Rows of four arrays at a node of the tree of points, of as many blocks; distances in words. */
typedef struct {
    const uint64_t *of[4];
    Py_ssize_t next, gap; /* from row to row, from block to block */
} node;
enum { GROUP = 4 }; /* blocks that are worked on together */

#include "gf64_units.h"

/* Zeros, aligned as registers like it, for the sums at all points; NULL with an exception. */
static void *sums_at(int points, void **aligned) {
    void *found = PyMem_Calloc((size_t)points + 1, 64);
    if (!found) PyErr_NoMemory();
    *aligned = (void *)(((uintptr_t)found + 63) / 64 * 64);
    return found;
}

/* Room for four arrays of a group's rows and for four of 32 + 16 + ... rows a block; NULL with an exception. */
static void *rows_of_a_group(void **aligned) { return sums_at(GROUP * (8 << MOST), aligned); }

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

/* Lists, one a component: how many follow, those. 0, or -1 with an exception. */
static int take_rights(rights *by, array *a, PyObject *given) {
    if (take(a, given, "rights", 'i', 0, 0)) return -1;
    const int32_t *lists = a->view.buf;
    Py_ssize_t i = 0;
    for (; i < a->count && by->comps < MOST_COMPS; by->comps++) {
        terms *next = &by->of[by->comps];
        next->count = lists[i];
        if (lists[i] < 0 || lists[i] > MOST_COMPS || lists[i] > a->count - i - 1) break;
        for (int k = 0; k < next->count; k++) next->of[k] = lists[i + 1 + k];
        i += 1 + next->count;
    }
    int fine = by->comps > 0 && i == a->count;
    for (int k = 0; fine && k < by->comps; k++)
        for (int j = 0; j < by->of[k].count; j++) fine &= by->of[k].of[j] >= 0 && by->of[k].of[j] < by->comps;
    if (fine) return 0;
    PyErr_Format(PyExc_ValueError, "rights must be lists, one for each of 1 .. %d components: how many follow, those", (int)MOST_COMPS);
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
    PyObject *x, *y, *given, *weights, *out, *result = NULL;
    array a[5] = {0};
    rights by = {0};
    int v;
    void *sums = NULL, *spare = NULL, *room, *near;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOiOO", &x, &y, &given, &v, &weights, &out)) return NULL;
    if (take(&a[0], x, "x", 'Q', 0, 0) || take(&a[1], y, "y", 'Q', 0, 0) || take(&a[2], weights, "weights", 'Q', 0, 0) ||
        take(&a[3], out, "out", 'Q', 1, 0) || take_rights(&by, &a[4], given))
        goto done;
    for (int k = 0; k < 3; k++)
        if (apart(&a[k], &a[3], "out and what goes in")) goto done;
    Py_ssize_t words = a[0].count / by.comps;
    if (v < 0 || v > MOST || a[0].count != by.comps * words || a[1].count != a[0].count || a[3].count != POWERS[v]) {
        PyErr_Format(PyExc_ValueError, "x and y have %d components, and out 3^v words for v of 0 .. 6; got %zd, %zd, %zd and %d",
                     by.comps, a[0].count, a[1].count, a[3].count, v);
        goto done;
    }
    if (whole_blocks(words, (Py_ssize_t)1 << v, a[2].count, a[2].count != 0)) goto done;
    if (!(sums = sums_at(POWERS[MOST], &room)) || !(spare = rows_of_a_group(&near))) goto done;
    const uint64_t *w = a[2].count ? a[2].view.buf : NULL;
    Py_BEGIN_ALLOW_THREADS
    CHOOSE(sums)(a[0].view.buf, a[1].view.buf, &by, words, v, w, near, room, a[3].view.buf);
    Py_END_ALLOW_THREADS
    result = Py_None;
    Py_INCREF(result);
done:
    PyMem_Free(sums);
    PyMem_Free(spare);
    give_back(a, 5);
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
    PyObject *x, *y, *given, *factors, *weights, *out, *result = NULL;
    array a[6] = {0};
    rights by = {0};
    int v;
    uint16_t where[64][16];
    void *sums = NULL, *spare = NULL, *room, *near;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOOOiO", &x, &y, &given, &factors, &weights, &v, &out)) return NULL;
    if (take(&a[0], x, "x", 'Q', 1, 0) || take(&a[1], y, "y", 'Q', 1, 0) || take(&a[2], factors, "factors", 'Q', 0, 64) ||
        take(&a[3], weights, "weights", 'Q', 0, 0) || take(&a[4], out, "out", 'Q', 1, 0) ||
        take_rights(&by, &a[5], given))
        goto done;
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 5; j++)
            if (i != j && (j < 2 || j == 4) && apart(&a[i], &a[j], "x, y, factors, weights and out")) goto done;
    Py_ssize_t words = a[0].count / by.comps;
    if (a[2].count != 64 || a[0].count != by.comps * words || a[1].count != a[0].count || v < -1 || v > MOST ||
        a[4].count != (v < 0 ? 0 : POWERS[v])) {
        PyErr_Format(PyExc_ValueError, "x and y have %d components, factors 64 words, and out 3^v for v of 0 .. 6, or none for -1; "
                     "got %zd, %zd, %zd, %zd and %d", by.comps, a[0].count, a[1].count, a[2].count, a[4].count, v);
        goto done;
    }
    if (whole_blocks(words, 64, a[3].count, 1)) goto done;
    if (!(sums = sums_at(POWERS[MOST], &room)) || !(spare = rows_of_a_group(&near))) goto done;
    const uint64_t *f = a[2].view.buf;
    for (int b = 0; b < 64; b++)
        for (int g = 0; g < 16; g++) {
            where[b][g] = (uint16_t)(16 * g);
            for (int k = 0; k < 4; k++) where[b][g] |= (uint16_t)((f[4 * g + k] >> b & 1) << k);
        }
    Py_BEGIN_ALLOW_THREADS
    CHOOSE(fold_bits)(a[0].view.buf, a[1].view.buf, &by, (const uint16_t(*)[16])where, words, a[3].view.buf, v, near, room);
    if (v >= 0) CHOOSE(finish_sums)(room, POWERS[v], a[4].view.buf);
    Py_END_ALLOW_THREADS
    result = Py_None;
    Py_INCREF(result);
done:
    PyMem_Free(sums);
    PyMem_Free(spare);
    give_back(a, 6);
    return result;
}

static PyObject *gf_claim(PyObject *self, PyObject *args) {
    PyObject *z, *weights, *out, *result = NULL;
    array a[3] = {0};
    void *sums = NULL, *room;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOO", &z, &weights, &out)) return NULL;
    if (take(&a[0], z, "z", 'Q', 0, 0) || take(&a[1], weights, "weights", 'Q', 0, 0) || take(&a[2], out, "out", 'Q', 1, 1) ||
        apart(&a[0], &a[2], "z and out") || apart(&a[1], &a[2], "weights and out"))
        goto done;
    if (power_of_two(a[2].count) < 0 || whole_blocks(a[0].count, a[2].count, a[1].count, 1)) goto done;
    if (!(sums = sums_at(1 << MOST, &room))) goto done;
    Py_BEGIN_ALLOW_THREADS
    CHOOSE(claim)(a[0].view.buf, a[1].view.buf, (int)a[2].count, room, a[2].view.buf, a[0].count);
    Py_END_ALLOW_THREADS
    result = Py_None;
    Py_INCREF(result);
done:
    PyMem_Free(sums);
    give_back(a, 3);
    return result;
}

static PyObject *gf_weigh(PyObject *self, PyObject *args) {
    PyObject *z, *weights, *out, *result = NULL;
    array a[3] = {0};
    (void)self;
    if (!PyArg_ParseTuple(args, "OOO", &z, &weights, &out)) return NULL;
    if (take(&a[0], z, "z", 'Q', 0, 0) || take(&a[1], weights, "weights", 'Q', 0, 0) || take(&a[2], out, "out", 'Q', 1, 1) ||
        apart(&a[0], &a[2], "z and out") || apart(&a[1], &a[2], "weights and out"))
        goto done;
    if (a[0].count != a[1].count * a[2].count) {
        PyErr_Format(PyExc_ValueError, "z has a row for each of out, and a column for each weight; got %zd words, %zd and %zd", a[0].count,
                     a[2].count, a[1].count);
        goto done;
    }
    Py_BEGIN_ALLOW_THREADS
    CHOOSE(weigh)(a[0].view.buf, a[1].view.buf, a[2].count, a[1].count, a[2].view.buf);
    Py_END_ALLOW_THREADS
    result = Py_None;
    Py_INCREF(result);
done:
    give_back(a, 3);
    return result;
}

static PyMethodDef METHODS[] = {
    {"gf_multiply", gf_multiply, METH_VARARGS, "gf_multiply(a, b, out): products, one by one."},
    {"gf_sums", gf_sums, METH_VARARGS, "gf_sums(x, y, rights, v, weights, out): sums at the points {0, 1, infinity}^v."},
    {"gf_fold", gf_fold, METH_VARARGS, "gf_fold(words, factors): sums of rows times factors, to the front of words."},
    {"gf_fold_bits", gf_fold_bits, METH_VARARGS, "gf_fold_bits(x, y, rights, factors, weights, v, out): the same of bits, in place; then as gf_sums."},
    {"gf_claim", gf_claim, METH_VARARGS, "gf_claim(z, weights, out): of each row, its sum with weights."},
    {"gf_weigh", gf_weigh, METH_VARARGS, "gf_weigh(z, weights, out): the same of rows one after the other, XORed to out."},
    {NULL, NULL, 0, NULL},
};

int add_gf64(PyObject *module) { return PyModule_AddFunctions(module, METHODS); }
