/* Bits born in a transfer, lifted to numbers: what the two ends make of their strings. Twin and meaning: lifts.py.

Strings come in 64 rows, apart in memory, of `words` words a lift; totals are (64, words). Eight columns at a time. */

#include "kernels.h"

/* 64 rows of so many lifts' words, one lift beside the other; `apart` words from row to row. */
typedef struct {
    const uint64_t *words;
    Py_ssize_t apart;
} strings;

typedef struct {
    strings first, second;
    Py_ssize_t words, lifts;
    const uint64_t *coefficients;
    const int32_t *sent;    /* planes of each lift */
    uint64_t *total;        /* (64, words) */
    uint64_t *rows;         /* of what is sent, lift by lift */
    uint64_t *bits;         /* (lifts, words) */
    const uint64_t *choices, *told; /* of a chooser: (lifts, words), and the rows that it was sent */
} lifted;

typedef struct {
    _Alignas(64) uint64_t at[64][8];
} tile;

#define BODY "lifts_body.h"
#include "variants.h"

static void run_offered(const void *of, Py_ssize_t begin, Py_ssize_t end) { CHOOSE(offer)(of, begin, end); }
static void run_chosen(const void *of, Py_ssize_t begin, Py_ssize_t end) { CHOOSE(choose)(of, begin, end); }
static void run_finished(const void *of, Py_ssize_t begin, Py_ssize_t end) { CHOOSE(finish)(of, begin, end); }

/* Strings (64, lifts, words) whose lifts lie side by side. */
static int take_strings(Py_buffer *view, strings *s, lifted *w, PyObject *object) {
    if (PyObject_GetBuffer(object, view, PyBUF_STRIDED_RO | PyBUF_FORMAT)) return -1;
    const char *format = view->format ? view->format : "B";
    if (view->itemsize == 8 && (format[0] == 'Q' || format[0] == 'L') && !format[1] && view->ndim == 3 && view->shape[0] == 64 &&
        view->shape[1] == w->lifts && view->shape[2] == w->words && (view->strides[2] == 8 || w->words == 1) &&
        (view->strides[1] == 8 * w->words || w->lifts == 1) && view->strides[0] >= 8 * w->words * w->lifts && view->strides[0] % 8 == 0 &&
        (uintptr_t)view->buf % 8 == 0) {
        s->words = view->buf, s->apart = view->strides[0] / 8;
        return 0;
    }
    PyErr_Format(PyExc_ValueError, "strings must be 64 rows of %zd lifts' %zd words, side by side", w->lifts, w->words);
    return -1;
}

/* Coefficients (lifts), planes sent (lifts), the total (64, words). */
static int take_lifts(lifted *w, array *a, PyObject *coefficients, PyObject *sent, PyObject *total, int least, Py_ssize_t *planes) {
    if (take(&a[0], coefficients, "coefficients", 'Q', 0, 0) || take(&a[1], sent, "sent", 'i', 0, 0) || take(&a[2], total, "total", 'Q', 1, 0))
        return -1;
    w->coefficients = a[0].view.buf, w->lifts = a[0].count, w->sent = a[1].view.buf, w->total = a[2].view.buf;
    w->words = a[2].count / 64;
    if (a[1].count != w->lifts || a[2].count != 64 * w->words || apart(&a[0], &a[2], "coefficients and total")) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "every lift has a coefficient and a number of planes, and a total 64 rows");
        return -1;
    }
    *planes = 0;
    for (Py_ssize_t k = 0; k < w->lifts; k++) {
        if (w->sent[k] < least || w->sent[k] > 63) {
            PyErr_Format(PyExc_ValueError, "a lift sends %d to 63 planes; got %d", least, (int)w->sent[k]);
            return -1;
        }
        *planes += w->sent[k];
    }
    return 0;
}

static Py_ssize_t tiles(const lifted *w) { return (w->words + 7) / 8; }

static PyObject *done(array *a, int count, Py_buffer *views, int more) {
    give_back(a, count);
    for (int k = 0; k < more; k++)
        if (views[k].obj) PyBuffer_Release(&views[k]);
    if (PyErr_Occurred()) return NULL;
    Py_RETURN_NONE;
}

static PyObject *lifts_offered(PyObject *self, PyObject *args) {
    PyObject *first, *second, *coefficients, *sent, *total, *rows, *bits;
    lifted w = {0};
    array a[5] = {0};
    Py_buffer views[2] = {0};
    Py_ssize_t planes;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOOOOO", &first, &second, &coefficients, &sent, &total, &rows, &bits)) return NULL;
    if (take_lifts(&w, a, coefficients, sent, total, 0, &planes) || take(&a[3], rows, "rows", 'Q', 1, 0) || take(&a[4], bits, "bits", 'Q', 1, 0) ||
        take_strings(&views[0], &w.first, &w, first) || take_strings(&views[1], &w.second, &w, second) ||
        apart(&a[2], &a[3], "total and rows") || apart(&a[2], &a[4], "total and bits") || apart(&a[3], &a[4], "rows and bits"))
        return done(a, 5, views, 2);
    if (a[3].count != planes * w.words || a[4].count != w.lifts * w.words) {
        PyErr_Format(PyExc_ValueError, "rows must hold %zd planes of %zd words, and bits one of each lift; got %zd and %zd words", planes, w.words,
                     a[3].count, a[4].count);
        return done(a, 5, views, 2);
    }
    w.rows = a[3].view.buf, w.bits = a[4].view.buf;
    Py_BEGIN_ALLOW_THREADS
    share_out(tiles(&w), run_offered, &w);
    Py_END_ALLOW_THREADS
    return done(a, 5, views, 2);
}

static PyObject *lifts_chosen(PyObject *self, PyObject *args) {
    PyObject *first, *coefficients, *sent, *total;
    lifted w = {0};
    array a[3] = {0};
    Py_buffer views[1] = {0};
    Py_ssize_t planes;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOO", &first, &coefficients, &sent, &total)) return NULL;
    if (take_lifts(&w, a, coefficients, sent, total, 0, &planes) || take_strings(&views[0], &w.first, &w, first)) return done(a, 3, views, 1);
    Py_BEGIN_ALLOW_THREADS
    share_out(tiles(&w), run_chosen, &w);
    Py_END_ALLOW_THREADS
    return done(a, 3, views, 1);
}

static PyObject *lifts_finished(PyObject *self, PyObject *args) {
    PyObject *choices, *told, *coefficients, *sent, *total;
    lifted w = {0};
    array a[5] = {0};
    Py_ssize_t planes;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOOO", &choices, &told, &coefficients, &sent, &total)) return NULL;
    if (take_lifts(&w, a, coefficients, sent, total, 0, &planes) || take(&a[3], choices, "choices", 'Q', 0, 0) || take(&a[4], told, "told", 'Q', 0, 0) ||
        apart(&a[2], &a[3], "total and choices") || apart(&a[2], &a[4], "total and what was told"))
        return done(a, 5, NULL, 0);
    if (a[3].count != w.lifts * w.words || a[4].count != planes * w.words) {
        PyErr_Format(PyExc_ValueError, "choices must hold a row of each lift, and what was told %zd rows of %zd words; got %zd and %zd words", planes,
                     w.words, a[3].count, a[4].count);
        return done(a, 5, NULL, 0);
    }
    w.choices = a[3].view.buf, w.told = a[4].view.buf;
    Py_BEGIN_ALLOW_THREADS
    share_out(tiles(&w), run_finished, &w);
    Py_END_ALLOW_THREADS
    return done(a, 5, NULL, 0);
}

static PyMethodDef METHODS[] = {
    {"lifts_offered", lifts_offered, METH_VARARGS, "lifts_offered(first, second, coefficients, sent, total, rows, bits): see lifts.py."},
    {"lifts_chosen", lifts_chosen, METH_VARARGS, "lifts_chosen(strings, coefficients, sent, total): see lifts.py."},
    {"lifts_finished", lifts_finished, METH_VARARGS, "lifts_finished(choices, told, coefficients, sent, total): see lifts.py."},
    {NULL, NULL, 0, NULL},
};

int add_lifts(PyObject *module) { return PyModule_AddFunctions(module, METHODS); }
