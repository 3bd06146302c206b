/* Owners' shares mod p = 2^61 - 1: polynomials that go on beyond the points where they are known, and sums of many rows.
Twin and meaning: field.py. */

#include "kernels.h"

#define P ((uint64_t)0x1FFFFFFFFFFFFFFF)
#define MOST_POINTS 32
#define TILE 128 /* columns whose differences stay in the first cache */
#define AT_ONCE 6 /* rows that are added to a folded sum: 7 p + 7 is below 2^64 */

#define BODY "shares_body.h"
#include "variants.h"

static PyObject *fail(array *arrays, int count) {
    give_back(arrays, count);
    return NULL;
}

static PyObject *continued(PyObject *self, PyObject *args) {
    PyObject *values, *known, *out;
    Py_ssize_t start, columns, points, rows;
    array a[3] = {0};
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOnnn", &values, &known, &out, &start, &points, &rows)) return NULL;
    if (take(&a[0], values, "values", 'Q', 0, 0) || take(&a[1], known, "known", 'Q', 0, 0) || take(&a[2], out, "out", 'Q', 1, 0) ||
        apart(&a[0], &a[2], "values and out") || apart(&a[1], &a[2], "known and out"))
        return fail(a, 3);
    columns = a[0].count;
    if (points < 0 || points > MOST_POINTS || rows < 1 || a[2].count % rows || start < 0 || start > a[2].count / rows ||
        columns > a[2].count / rows - start || (points ? a[1].count % points || a[1].count / points != columns : a[1].count)) {
        PyErr_Format(PyExc_ValueError, "at most %d points must be known for all %zd columns, and every row of out must hold them from column "
                     "%zd on; got %zd points and %zd rows", MOST_POINTS, columns, start, points, rows);
        return fail(a, 3);
    }
    Py_BEGIN_ALLOW_THREADS
    CHOOSE(continued)(a[0].view.buf, a[1].view.buf, (uint64_t *)a[2].view.buf + start, points, rows, columns, a[2].count / rows);
    Py_END_ALLOW_THREADS
    give_back(a, 3);
    Py_RETURN_NONE;
}

static PyObject *column_sums(PyObject *self, PyObject *args) {
    PyObject *values, *out;
    array a[2] = {0};
    (void)self;
    if (!PyArg_ParseTuple(args, "OO", &values, &out)) return NULL;
    if (take(&a[0], values, "values", 'Q', 0, 0) || take(&a[1], out, "out", 'Q', 1, 0) || apart(&a[0], &a[1], "values and out"))
        return fail(a, 2);
    if (a[1].count ? a[0].count % a[1].count : a[0].count) {
        PyErr_Format(PyExc_ValueError, "values must hold whole rows of %zd words; got %zd", a[1].count, a[0].count);
        return fail(a, 2);
    }
    Py_BEGIN_ALLOW_THREADS
    CHOOSE(column_sums)(a[0].view.buf, a[1].view.buf, a[1].count ? a[0].count / a[1].count : 0, a[1].count);
    Py_END_ALLOW_THREADS
    give_back(a, 2);
    Py_RETURN_NONE;
}

static PyMethodDef METHODS[] = {
    {"continued", continued, METH_VARARGS, "continued(values, known, out, start, points, rows): a polynomial at 0 and at points 1 .. at those that follow."},
    {"column_sums", column_sums, METH_VARARGS, "column_sums(values, out): out = the sum of the rows of values, of words below p."},
    {NULL, NULL, 0, NULL},
};

int add_shares(PyObject *module) { return PyModule_AddFunctions(module, METHODS); }
