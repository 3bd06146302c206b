/* Values of records to rows of features, rows to their places, and numbers to the cells of a survey: what `rows.py` and
`learning.survey` say, each in one pass. Their twins are NumPy, and give the same bits: every operation here is one that IEEE 754 rounds correctly, none is fused with another (the build says
so), and each row is of one record alone. It runs on the machine of the records' owner, who sees them anyway: how long it
takes depends on values. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

/* What a column's values are and what is written of them; `rows.py` makes these. */
enum kind { CODES, NUMBERS, SCALED };
enum { FIELDS = 10, SEEN = 4, LOW_CONSTANTS = 3, BLOCK = 32 /* rows whose features stay in a core's nearest cache */ };

typedef struct {
    int64_t kind, source, other; /* the number of its values, and of its buckets, -1 for none */
    int64_t at, constants;       /* the first feature; the first of its constants */
    int64_t rows, width;         /* of the table of a column of codes; else how many knots and kept buckets */
    int64_t number, missing;     /* whether it has such a feature; of SCALED, whether that is on [0, 1] */
    int64_t seen;                /* the first of its counts */
} column;

static int taken(Py_buffer *view, PyObject *object, char kind, int writable, Py_ssize_t least) {
    int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(object, view, flags)) return -1;
    char found = view->format && view->format[0] && !view->format[1] ? view->format[0] : '?';
    Py_ssize_t size = kind == 'i' || kind == 'f' ? 4 : 8;
    int fits = view->itemsize == size && (found == kind || (kind == 'q' && found == 'l') || (kind == 'i' && found == 'l'));
    if (fits && view->len / size >= least && (uintptr_t)view->buf % (uintptr_t)size == 0) return 0;
    PyErr_Format(PyExc_ValueError, "an array of %zd items of kind %c is due; got %zd of kind %c", least, kind,
                 view->len / view->itemsize, found);
    PyBuffer_Release(view);
    view->obj = NULL;
    return -1;
}

static void released(Py_buffer *views, Py_ssize_t count) {
    for (Py_ssize_t k = 0; k < count; k++)
        if (views[k].obj) PyBuffer_Release(views + k);
}

/* Rows of a table, by their numbers; one below 0 is counted from the end. -1 for a number that the table does not have. */
static int by_code(const column *c, const int32_t *codes, const double *table, double *out, int64_t d, int64_t *seen, Py_ssize_t n) {
    for (Py_ssize_t i = 0; i < n; i++, out += d) {
        int64_t code = codes[i] < 0 ? codes[i] + c->rows : codes[i];
        if (code < 0 || code >= c->rows) return -1;
        seen[code]++;
        const double *row = table + code * c->width;
        for (int64_t k = 0; k < c->width; k++) out[k] = row[k];
    }
    return 0;
}

static inline double within(double value, double low, double high) {
    value = value < low ? low : value;
    return value > high ? high : value;
}

/* The functions of `bends.bends` at a number; `table` has K - 1 of them at each of the K knots, `gaps` the K - 1 between. */
static inline void bent(double value, const double *knots, const double *gaps, const double *table, int64_t K, double *out) {
    double held = within(value, knots[0], knots[K - 1]);
    int64_t left = 0;
    for (int64_t k = 1; k < K - 1; k++) left += held >= knots[k];
    double share = (held - knots[left]) / gaps[left], rest = 1 - share;
    const double *before = table + left * (K - 1), *after = before + K - 1;
    for (int64_t q = 0; q < K - 1; q++) out[q] = before[q] * rest + after[q] * share;
}

/* A column as a survey has it (`columns.Surveyed.write`, `mapping.Counts.add_surveyed`). Constants: low, high, the middle;
half the width; knots, gaps, functions; kept buckets. Seen: missing, unknown, not read, clipped. */
static void surveyed(const column *c, const double *values, const double *places, const double *constants, double *out, int64_t d,
                     int64_t *seen, Py_ssize_t n) {
    int64_t K = c->rows, kept = c->width;
    const double low = constants[0], high = constants[1], middle = constants[2], half = constants[3];
    const double *knots = constants + LOW_CONSTANTS + 1, *gaps = knots + K, *table = gaps + (K ? K - 1 : 0);
    const double *buckets = table + (K ? K * (K - 1) : 0);
    for (Py_ssize_t i = 0; i < n; i++, out += d) {
        double value = values[i], place = places ? places[i] : -1, *to = out;
        int finite = isfinite(value) != 0, odd = isinf(value) != 0;
        int gone = isnan(value) || (odd && place < 0), text = odd && !gone;
        if (c->number) {
            *to++ = finite && half ? (within(value, low, high) - middle) / half : 0.0;
            seen[3] += !text && (value < low || value > high);
        }
        if (K) {
            if (finite)
                bent(value, knots, gaps, table, K, to);
            else
                for (int64_t q = 0; q < K - 1; q++) to[q] = 0.0;
            to += K - 1;
        }
        int known = 0;
        for (int64_t k = 0; k < kept; k++) {
            int mine = odd && place == buckets[k];
            *to++ = mine;
            known |= mine;
        }
        if (c->missing) *to = gone;
        seen[0] += gone;
        seen[1] += kept && text && !known;
        seen[2] += !kept && c->number && text;
    }
}

/* A number of a stated range (`columns.Numeric.write`, but for logarithms). Constants: low, high, the width. */
static void scaled(const column *c, const double *values, const double *constants, double *out, int64_t d, int64_t *seen, Py_ssize_t n) {
    int64_t K = c->rows;
    const double low = constants[0], high = constants[1], width = constants[2];
    const double *knots = constants + LOW_CONSTANTS, *gaps = knots + K, *table = gaps + (K ? K - 1 : 0);
    for (Py_ssize_t i = 0; i < n; i++, out += d) {
        double value = values[i];
        int finite = isfinite(value) != 0;
        seen[0] += isnan(value) != 0;
        seen[2] += isinf(value) != 0;
        seen[3] += finite && (value < low || value > high);
        double part = finite ? (within(value, low, high) - low) / width : 0.5;
        out[0] = !width ? 0.0 : c->number ? part : within(2 * part - 1, -1.0, 1.0);
        if (!K) continue;
        if (finite)
            bent(value, knots, gaps, table, K, out + 1);
        else
            for (int64_t q = 0; q < K - 1; q++) out[1 + q] = 0.0;
        out[K] = !finite;
    }
}

/* Whether what a column says of itself lies in its arrays. */
static int fits(const column *c, int64_t sources, int64_t constants, int64_t counts, int64_t d) {
    int64_t features, numbers, K = c->rows, seen = SEEN;
    if (c->kind < CODES || c->kind > SCALED || c->source < 0 || c->source >= sources || c->other >= sources || c->other < -1 ||
        c->at < 0 || c->at > d || c->rows < 0 || c->rows > 1 << 20 || c->width < 0 || c->width > 1 << 20 || c->constants < 0 ||
        c->seen < 0 || (c->kind != CODES && K == 1))
        return 0;
    if (c->kind == CODES)
        features = c->width, numbers = c->rows * c->width, seen = c->rows;
    else {
        numbers = LOW_CONSTANTS + (K ? K + (K - 1) + K * (K - 1) : 0);
        features = c->kind == SCALED ? 1 + K : (c->number != 0) + (K ? K - 1 : 0) + c->width + (c->missing != 0);
        numbers += c->kind == NUMBERS ? 1 + c->width : 0;
    }
    return c->at + features <= d && c->constants + numbers <= constants && c->seen + seen <= counts;
}

/* All columns of some rows. -1 for a code that its table does not have. */
static int write_rows(const column *columns, Py_ssize_t many, const Py_buffer *sources, const double *constants, double *X, int64_t d,
                      int64_t *seen, Py_ssize_t n) {
    int wrong = 0;
    for (Py_ssize_t begin = 0; begin < n; begin += BLOCK) {
        Py_ssize_t rows = n - begin < BLOCK ? n - begin : BLOCK;
        for (const column *c = columns; c < columns + many; c++) {
            double *out = X + begin * d + c->at;
            const double *values = (const double *)sources[c->source].buf + begin;
            const double *places = c->other < 0 ? NULL : (const double *)sources[c->other].buf + begin;
            if (c->kind == CODES)
                wrong |= by_code(c, (const int32_t *)sources[c->source].buf + begin, constants + c->constants, out, d, seen + c->seen, rows);
            else if (c->kind == NUMBERS)
                surveyed(c, values, places, constants + c->constants, out, d, seen + c->seen, rows);
            else
                scaled(c, values, constants + c->constants, out, d, seen + c->seen, rows);
        }
    }
    return wrong;
}

static PyObject *features(PyObject *self, PyObject *args) {
    PyObject *given, *told, *numbers, *room, *counts, *result = NULL;
    Py_ssize_t n, d;
    (void)self;
    if (!PyArg_ParseTuple(args, "O!OOnnOO", &PyTuple_Type, &given, &told, &numbers, &n, &d, &room, &counts)) return NULL;
    Py_ssize_t sources = PyTuple_Size(given);
    Py_buffer *views = PyMem_Calloc((size_t)sources + 4, sizeof *views), *own = views + sources;
    if (!views) return PyErr_NoMemory();
    if (n < 0 || d < 1 || n > PY_SSIZE_T_MAX / d) {
        PyErr_SetString(PyExc_ValueError, "there are rows of one feature at least");
        goto end;
    }
    if (taken(own, told, 'q', 0, 0) || taken(own + 1, numbers, 'd', 0, 0) || taken(own + 2, room, 'd', 1, n * d) ||
        taken(own + 3, counts, 'q', 1, 0))
        goto end;
    const column *columns = own[0].buf;
    Py_ssize_t many = own[0].len / (Py_ssize_t)sizeof *columns;
    char *kinds = PyMem_Calloc((size_t)sources + 1, 1);
    if (!kinds) {
        PyErr_NoMemory();
        goto end;
    }
    int good = 1;
    for (Py_ssize_t k = 0; good && k < many; k++) {
        good = fits(columns + k, sources, own[1].len / 8, own[3].len / 8, d);
        if (good) kinds[columns[k].source] |= columns[k].kind == CODES ? 1 : 2;
        if (good && columns[k].other >= 0) kinds[columns[k].other] |= 2;
    }
    for (Py_ssize_t k = 0; good && k < sources; k++) good = kinds[k] != 3;
    if (!good) PyErr_SetString(PyExc_ValueError, "a column must lie in its arrays");
    for (Py_ssize_t k = 0; good && k < sources; k++)
        if (kinds[k] && taken(views + k, PyTuple_GetItem(given, k), kinds[k] == 1 ? 'i' : 'd', 0, n)) good = 0;
    PyMem_Free(kinds);
    if (!good) goto end;
    int wrong;
    Py_BEGIN_ALLOW_THREADS;
    wrong = write_rows(columns, many, views, own[1].buf, own[2].buf, d, own[3].buf, n);
    Py_END_ALLOW_THREADS;
    if (wrong)
        PyErr_SetString(PyExc_ValueError, "a code must be a row of its table");
    else
        result = Py_NewRef(Py_None);
end:
    released(views, sources + 4);
    PyMem_Free(views);
    return result;
}

static inline void times(const double *row, double factor, double *out, Py_ssize_t d) {
    for (Py_ssize_t k = 0; k < d; k++) out[k] = row[k] * factor;
}

static inline void times_single(const double *row, double factor, float *out, Py_ssize_t d) {
    for (Py_ssize_t k = 0; k < d; k++) out[k] = (float)(row[k] * factor);
}

/* Row i, times its factor, to row to[i] of the records, and its label too; nowhere below 0; zeros without a label. */
static void put_rows(const double *X, const double *factors, const double *labels, const int64_t *to, Py_ssize_t n, Py_ssize_t d,
                     void *out, double *y, int single) {
    Py_ssize_t size = single ? 4 : 8;
    for (Py_ssize_t i = 0; i < n; i++) {
        if (to[i] < 0) continue;
        char *row = (char *)out + to[i] * d * size;
        int gone = isnan(labels[i]) != 0;
        y[to[i]] = gone ? 0.0 : labels[i];
        if (gone)
            memset(row, 0, (size_t)(d * size));
        else if (single)
            times_single(X + i * d, factors[i], (float *)row, d);
        else
            times(X + i * d, factors[i], (double *)row, d);
    }
}

static PyObject *place(PyObject *self, PyObject *args) {
    PyObject *objects[6], *result = NULL;
    Py_buffer a[6] = {{0}};
    Py_ssize_t n, d;
    int single;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOOnnOOp", objects, objects + 1, objects + 2, objects + 3, &n, &d, objects + 4, objects + 5, &single))
        return NULL;
    if (n < 0 || d < 1 || n > PY_SSIZE_T_MAX / d) return PyErr_Format(PyExc_ValueError, "there are rows of one feature at least");
    if (taken(a, objects[0], 'd', 0, n * d) || taken(a + 1, objects[1], 'd', 0, n) || taken(a + 2, objects[2], 'd', 0, n) ||
        taken(a + 3, objects[3], 'q', 0, n) || taken(a + 4, objects[4], single ? 'f' : 'd', 1, 0) || taken(a + 5, objects[5], 'd', 1, 0))
        goto end;
    const int64_t *to = a[3].buf;
    Py_ssize_t rows = a[4].len / (single ? 4 : 8) / d;
    if (a[5].len / 8 < rows) rows = a[5].len / 8;
    for (Py_ssize_t i = 0; i < n; i++)
        if (to[i] >= rows) {
            PyErr_SetString(PyExc_ValueError, "a place must be a row of the records");
            goto end;
        }
    Py_BEGIN_ALLOW_THREADS;
    put_rows(a[0].buf, a[1].buf, a[2].buf, to, n, d, a[4].buf, a[5].buf, single);
    Py_END_ALLOW_THREADS;
    result = Py_NewRef(Py_None);
end:
    released(a, 6);
    return result;
}

/* The cells of a survey's numbers (`learning.survey_numbers`). */
enum { LOWEST = -24, HIGHEST = 40, OCTAVES = HIGHEST - LOWEST, CELLS = 2 + 2 * OCTAVES, NUMBER = CELLS + 4 * OCTAVES };
#define MOMENT 0.25

/* Adds each value to its cell, or to its bucket where it is a text, of its group's row of `out`; group -1: of nobody. */
static void into_cells(const double *values, const double *places, const int64_t *group, Py_ssize_t n, double low, double high,
                       int64_t buckets, double *out, int64_t stride) {
    const double least = ldexp(1.0, LOWEST), largest = nextafter(ldexp(1.0, HIGHEST), 0.0);
    const uint64_t fraction = (UINT64_C(1) << 52) - 1, one = UINT64_C(1023) << 52;
    for (Py_ssize_t i = 0; i < n; i++) {
        if (group[i] < 0) continue;
        double *row = out + group[i] * stride, value = values[i];
        if (isinf(value)) {
            if (places && places[i] >= 0) {
                int64_t place = (int64_t)places[i];
                if (place < buckets) row[NUMBER + place] += 1.0;
                continue;
            }
            value = NAN;
        }
        value = within(value, low, high);
        double size = fabs(value), t;
        if (isnan(value) || size < least) {
            row[isnan(value) ? 0 : 1] += 1.0;
            continue;
        }
        size = size > largest ? largest : size;
        uint64_t bits;
        memcpy(&bits, &size, sizeof bits);
        int64_t octave = (int64_t)(bits >> 52) - 1023 - LOWEST + (value > 0 ? OCTAVES : 0);
        bits = (bits & fraction) | one;
        memcpy(&t, &bits, sizeof t);
        t = 2.0 * t - 3.0;
        row[2 + octave] += 1.0;
        row[CELLS + octave] += MOMENT * t;
        row[CELLS + 2 * OCTAVES + octave] += MOMENT * (1.5 * (t * t) - 0.5);
    }
}

static PyObject *cells(PyObject *self, PyObject *args) {
    PyObject *objects[4], *result = NULL;
    Py_buffer a[4] = {{0}};
    Py_ssize_t n;
    long long buckets, at, stride, groups;
    double low, high;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOnddLOLLL", objects, objects + 1, objects + 2, &n, &low, &high, &buckets, objects + 3, &at, &stride,
                          &groups))
        return NULL;
    if (n < 0 || buckets < 0 || at < 0 || groups < 0 || groups > 1 << 30 || stride < 0 || stride > 1 << 30 || buckets > stride ||
        at > stride - NUMBER - buckets)
        return PyErr_Format(PyExc_ValueError, "a column's cells must lie in a row");
    int placed = objects[1] != Py_None;
    if (taken(a, objects[0], 'd', 0, n) || (placed && taken(a + 1, objects[1], 'd', 0, n)) || taken(a + 2, objects[2], 'q', 0, n) ||
        taken(a + 3, objects[3], 'd', 1, (Py_ssize_t)(groups * stride)))
        goto end;
    const int64_t *group = a[2].buf;
    for (Py_ssize_t i = 0; i < n; i++)
        if (group[i] >= groups) {
            PyErr_SetString(PyExc_ValueError, "a group must have a row");
            goto end;
        }
    Py_BEGIN_ALLOW_THREADS;
    into_cells(a[0].buf, placed ? a[1].buf : NULL, group, n, low, high, buckets, (double *)a[3].buf + at, stride);
    Py_END_ALLOW_THREADS;
    result = Py_NewRef(Py_None);
end:
    released(a, 4);
    return result;
}

static PyMethodDef METHODS[] = {
    {"features", features, METH_VARARGS,
     "features(sources, columns, constants, n, d, X, seen): the columns' features of n rows, into X; seen counts what they hold."},
    {"place", place, METH_VARARGS,
     "place(X, factors, labels, to, n, d, out, y, single): row i of X times its factor to row to[i] of out, its label to y."},
    {"cells", cells, METH_VARARGS,
     "cells(values, places, group, n, low, high, buckets, out, at, stride, groups): adds values to their groups' rows, from at on."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, "_rows", "Compiled rows.", -1, METHODS, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__rows(void) { return PyModule_Create(&MODULE); }
