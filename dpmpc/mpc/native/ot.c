/* Oblivious transfers in bulk: the columns of SoftSpokenOT, and the hash of its rows. Twin and meaning: ot.py. */

#include "kernels.h"

typedef struct {
    const uint8_t *schedules; /* (trees, 2^k) leaves */
    Py_ssize_t trees, words;
    int k;
    uint64_t position;
    uint64_t *planes;      /* (trees k, words) */
    uint64_t *sums;        /* (trees, words), or NULL */
    const uint64_t *fixes; /* (trees - 1, words), or NULL: XORed to the planes of trees 1, 2, ... where `masks` says */
    const uint64_t *masks; /* (trees k): all ones or zeros */
} columns;

/* Rows of the transposed planes, eight columns at a time: 64 rows of eight low and eight high halves. */
typedef struct {
    _Alignas(64) uint64_t low[64][8], high[64][8];
} block;

/* What is XORed to a column before it is hashed: of its bit's number and of its word's, the low half and the high one. */
typedef struct {
    const uint64_t *bits; /* (64, 2) */
    uint64_t words[8][2]; /* those of a block's words; of the last block's some may be of no use */
} tweaks;

#define BODY "ot_body.h"
#include "aes_units.h"

static PyObject *ot_columns(PyObject *self, PyObject *args) {
    PyObject *schedules, *planes, *sums, *fixes, *masks;
    unsigned long long position;
    array a[5] = {0};
    columns w = {0};
    (void)self;
    if (!PyArg_ParseTuple(args, "OiKOOOO", &schedules, &w.k, &position, &planes, &sums, &fixes, &masks)) return NULL;
    if (position % 2) return PyErr_Format(PyExc_ValueError, "streams begin at a whole block; got word %llu", position);
    if (w.k < 1 || w.k > 8) return PyErr_Format(PyExc_ValueError, "a tree has 1 to 8 levels; got %d", w.k);
    if (take_schedule(&a[0], schedules) || take(&a[1], planes, "planes", 'Q', 1, 0) || take(&a[2], sums, "sums", 'Q', 1, 0) ||
        take(&a[3], fixes, "fixes", 'Q', 0, 0) || take(&a[4], masks, "masks", 'Q', 0, 0))
        goto refused;
    w.trees = a[0].count / AES_SCHEDULE >> w.k;
    w.words = w.trees ? a[1].count / (w.trees * w.k) : 0;
    if (a[0].count != (w.trees << w.k) * AES_SCHEDULE || !w.trees || a[1].count != w.trees * w.k * w.words ||
        (a[2].count && a[2].count != w.trees * w.words) || (a[3].count && a[3].count != (w.trees - 1) * w.words) ||
        (a[3].count && a[4].count != w.trees * w.k)) {
        PyErr_Format(PyExc_ValueError, "%zd schedules, %zd planes' words, %zd sums, %zd fixes and %zd masks do not fit each other",
                     a[0].count / AES_SCHEDULE, a[1].count, a[2].count, a[3].count, a[4].count);
        goto refused;
    }
    for (int i = 0; i < 5; i++)
        for (int j = 1; j < 3; j++)
            if (i != j && a[i].count && a[j].count && apart(&a[i], &a[j], "what is read and what is written")) goto refused;
    w.schedules = a[0].view.buf, w.position = position, w.planes = a[1].view.buf;
    w.sums = a[2].count ? a[2].view.buf : NULL, w.fixes = a[3].count ? a[3].view.buf : NULL, w.masks = a[4].view.buf;
    Py_BEGIN_ALLOW_THREADS
    CHOOSE_AES(make_columns)(&w);
    Py_END_ALLOW_THREADS
    give_back(a, 5);
    Py_RETURN_NONE;
refused:
    give_back(a, 5);
    return NULL;
}

/* Columns at .. at + left - 1 of one half of the hashes, the last ones; 64 rows. */
static void put_rows(const uint64_t rows[64][8], uint64_t *out, Py_ssize_t at, Py_ssize_t left, Py_ssize_t columns) {
    for (int b = 0; b < 64; b++) memcpy(out + b * columns + at, rows[b], (size_t)left * 8);
}

static void take_rows(const uint64_t *in, uint64_t rows[64][8], Py_ssize_t at, Py_ssize_t left, Py_ssize_t columns) {
    if (left == 8) {
        for (int b = 0; b < 64; b++) memcpy(rows[b], in + b * columns + at, 64);
        return;
    }
    memset(rows, 0, 64 * sizeof rows[0]);
    for (int b = 0; b < 64; b++) memcpy(rows[b], in + b * columns + at, (size_t)left * 8);
}

static PyObject *ot_hashes(PyObject *self, PyObject *args) {
    PyObject *planes, *schedule, *given, *offsets, *out;
    array a[5] = {0};
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOOO", &planes, &schedule, &given, &offsets, &out)) return NULL;
    if (take(&a[0], planes, "planes", 'Q', 0, 0) || take_schedule(&a[1], schedule) || take(&a[2], offsets, "offsets", 'Q', 0, 2) ||
        take(&a[3], out, "out", 'Q', 1, 0) || take(&a[4], given, "tweaks", 'Q', 0, 0) || apart(&a[0], &a[3], "planes and out") ||
        apart(&a[2], &a[3], "offsets and out") || apart(&a[4], &a[3], "tweaks and out")) {
        give_back(a, 5);
        return NULL;
    }
    Py_ssize_t columns = a[0].count / 128, times = a[2].count / 2, one = 64 * columns;
    Py_ssize_t parts = times && one ? a[3].count / (times * one) : 1;
    if (a[0].count != 128 * columns || a[2].count != 2 * times || a[1].count != AES_SCHEDULE ||
        a[3].count != times * parts * one || parts < 1 || parts > 2 || a[4].count != 2 * (64 + columns)) {
        PyErr_Format(PyExc_ValueError,
                     "128 planes, pairs of offsets, tweaks of 64 bits and of all words, and one or two words a hash are taken; got "
                     "%zd, %zd, %zd and %zd words",
                     a[0].count, a[2].count, a[4].count, a[3].count);
        give_back(a, 5);
        return NULL;
    }
    const uint64_t *in = a[0].view.buf, *offset = a[2].view.buf;
    uint64_t *to = a[3].view.buf;
    Py_BEGIN_ALLOW_THREADS
    block x, h;
    tweaks t = {.bits = a[4].view.buf};
    for (Py_ssize_t at = 0; at < columns; at += 8) {
        Py_ssize_t left = columns - at < 8 ? columns - at : 8;
        take_rows(in, x.low, at, left, columns);
        take_rows(in + 64 * columns, x.high, at, left, columns);
        transpose_tile(&x.low[0][0]);
        transpose_tile(&x.high[0][0]);
        memset(t.words, 0, sizeof t.words);
        memcpy(t.words, t.bits + 2 * (64 + at), (size_t)left * 16);
        for (Py_ssize_t m = 0; m < times; m++) {
            uint64_t *low = to + m * parts * one, *high = parts == 2 ? low + one : NULL;
            if (left == 8) {
                CHOOSE_AES(hash_block)(a[1].view.buf, &x, &t, offset + 2 * m, low + at, high ? high + at : NULL, columns);
                continue;
            }
            CHOOSE_AES(hash_block)(a[1].view.buf, &x, &t, offset + 2 * m, h.low[0], high ? h.high[0] : NULL, 8);
            put_rows(h.low, low, at, left, columns);
            if (high) put_rows(h.high, high, at, left, columns);
        }
    }
    Py_END_ALLOW_THREADS
    give_back(a, 5);
    Py_RETURN_NONE;
}

static PyMethodDef METHODS[] = {
    {"ot_columns", ot_columns, METH_VARARGS, "ot_columns(schedules, k, position, planes, sums, fixes, masks): see ot.py."},
    {"ot_hashes", ot_hashes, METH_VARARGS, "ot_hashes(planes, schedule, tweaks, offsets, out): see ot.py."},
    {NULL, NULL, 0, NULL},
};

int add_ot(PyObject *module) { return PyModule_AddFunctions(module, METHODS); }
