/* Bit planes to numbers and back: 64 x 64 transposes, eight side by side. Twin and meaning: planes.py. */

#include "kernels.h"

#define BODY "planes_body.h"
#include "variants.h"

void transpose_tile(uint64_t *x) { CHOOSE(transpose_eight)(x); }

typedef struct {
    const uint64_t *in;
    uint64_t *out;
    Py_ssize_t rows_in, rows_out, words;
} planes;

enum { PIECE = 32 /* words */ };

static void transpose_pieces(const void *of, Py_ssize_t begin, Py_ssize_t end) {
    const planes *p = of;
    Py_ssize_t last = end * PIECE < p->words ? end * PIECE : p->words;
    CHOOSE(transpose_rows)(p->in, p->rows_in, p->out, p->rows_out, p->words, begin * PIECE, last);
}

static PyObject *transpose(PyObject *self, PyObject *args) {
    PyObject *block, *out;
    Py_ssize_t words;
    array a[2] = {0};
    (void)self;
    if (!PyArg_ParseTuple(args, "OOn", &block, &out, &words)) return NULL;
    if (words < 0 || words > PY_SSIZE_T_MAX / 64) return PyErr_Format(PyExc_ValueError, "words must be at least 0; got %zd", words);
    if (take(&a[0], block, "block", 'Q', 0, 0) || take(&a[1], out, "out", 'Q', 1, 0) || apart(&a[0], &a[1], "block and out")) {
        give_back(a, 2);
        return NULL;
    }
    Py_ssize_t rows_in = words ? a[0].count / words : 0, rows_out = words ? a[1].count / words : 0;
    if (rows_in * words != a[0].count || rows_out * words != a[1].count || rows_in > 64 || rows_out > 64) {
        PyErr_Format(PyExc_ValueError, "block and out must hold at most 64 rows of %zd words; got %zd and %zd words", words, a[0].count,
                     a[1].count);
        give_back(a, 2);
        return NULL;
    }
    const planes whole = {a[0].view.buf, a[1].view.buf, rows_in, rows_out, words};
    Py_BEGIN_ALLOW_THREADS
    share_out((words + PIECE - 1) / PIECE, transpose_pieces, &whole);
    Py_END_ALLOW_THREADS
    give_back(a, 2);
    Py_RETURN_NONE;
}

static PyMethodDef METHODS[] = {
    {"transpose", transpose, METH_VARARGS, "transpose(block, out, words): bit l of out[i, w] = bit i of block[l, w]."},
    {NULL, NULL, 0, NULL},
};

int add_planes(PyObject *module) { return PyModule_AddFunctions(module, METHODS); }
