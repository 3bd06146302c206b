/* The ANDs of a layer by half-gates, on labels in the slots of a program. Twin and meaning: two_servers/half_gates.py.

Labels are of 16 bytes, a lane's beside the next one's; the state is that of program.c with one component. A gate's two
ciphertexts are rows of labels, one after the other. */

#include "kernels.h"

#define BODY "half_gates_body.h"
#include "aes_units.h"

enum { LANES_AT_ONCE = 16 };

typedef struct {
    uint64_t *state;
    Py_ssize_t tiles, slots, tile, words; /* tile and words: two a lane */
    const int32_t *ands;
    Py_ssize_t count;
    uint64_t first; /* the layer's first gate has this number in the program */
    const uint64_t *delta;
    const uint8_t *schedule;
    uint64_t *tables; /* (count, 2, words) */
    int garbles;
} gates;

static void do_tiles(const void *of, Py_ssize_t begin, Py_ssize_t end) {
#ifndef NO_AES_UNIT
    const gates *g = of;
    for (Py_ssize_t t = begin; t < end; t++) {
        uint64_t *tile = g->state + t * g->slots * g->tile;
        const Py_ssize_t at = t * g->tile, words = g->words - at < g->tile ? g->words - at : g->tile;
        for (Py_ssize_t i = 0; i < g->count; i++) {
            const int32_t *gate = g->ands + 3 * i;
            uint64_t *out = tile + gate[0] * g->tile, *first = g->tables + 2 * i * g->words + at, *second = first + g->words;
            const uint64_t *a = tile + gate[1] * g->tile, *b = tile + gate[2] * g->tile;
            const uint64_t number = (g->first + (uint64_t)i) * (uint64_t)(g->words / 2) + (uint64_t)(at / 2);
            if (g->garbles)
                CHOOSE_AES(garble_row)(a, b, out, first, second, number, words / 2, g->delta, g->schedule);
            else
                CHOOSE_AES(evaluate_row)(a, b, out, first, second, number, words / 2, g->schedule);
        }
    }
#else
    (void)of, (void)begin, (void)end;
#endif
}

/* 0, or -1 with an exception. */
static int check_gates(const gates *g, const array *a) {
    if (g->slots < 1 || g->tile < 2 * LANES_AT_ONCE || g->tile % (2 * LANES_AT_ONCE) || g->words < 0 || g->words % (2 * LANES_AT_ONCE) ||
        g->slots > 1 << 24 || g->tile > 1 << 24 || g->tiles != (g->words + g->tile - 1) / g->tile ||
        a[0].count != g->tiles * g->slots * g->tile || a[1].count != 3 * g->count) {
        PyErr_Format(PyExc_ValueError, "labels lie in slots, in tiles of a multiple of %d lanes, and ands are rows of three; got %zd, %zd, %zd",
                     (int)LANES_AT_ONCE, g->slots, g->tile, g->words);
        return -1;
    }
    for (Py_ssize_t i = 0; i < 3 * g->count; i++)
        if (g->ands[i] < 0 || g->ands[i] >= g->slots) {
            PyErr_Format(PyExc_ValueError, "slots of ands must lie in 0 .. %zd; got %d", g->slots - 1, (int)g->ands[i]);
            return -1;
        }
    if (a[2].count == 2 * g->count * g->words) return 0;
    PyErr_Format(PyExc_ValueError, "tables must hold %zd gates' rows of %zd words; got %zd words", g->count, g->words, a[2].count);
    return -1;
}

static PyObject *half_gates(PyObject *self, PyObject *args) {
    PyObject *state, *ands, *tables, *schedule, *delta, *result = NULL;
    unsigned long long first;
    gates g = {0};
    array a[5] = {0};
    (void)self;
    if (!PyArg_ParseTuple(args, "O(nnn)OKOOO", &state, &g.slots, &g.tile, &g.words, &ands, &first, &schedule, &tables, &delta)) return NULL;
    g.garbles = delta != Py_None;
    if (take(&a[0], state, "state", 'Q', 1, 0) || take(&a[1], ands, "ands", 'i', 0, 0) || take(&a[2], tables, "tables", 'Q', g.garbles, 0) ||
        take_schedule(&a[3], schedule) || (g.garbles && take(&a[4], delta, "delta", 'Q', 0, 2)))
        goto done;
    for (int i = 1; i < 5; i++)
        if (a[i].view.obj && (apart(&a[0], &a[i], "labels and what goes in") || (i > 2 && apart(&a[2], &a[i], "tables and what goes in"))))
            goto done;
    g.state = a[0].view.buf, g.ands = a[1].view.buf, g.count = a[1].count / 3, g.first = first;
    g.tiles = g.slots > 0 && g.tile > 0 && g.slots <= 1 << 24 && g.tile <= 1 << 24 ? a[0].count / (g.slots * g.tile) : 0;
    g.delta = a[4].view.buf, g.schedule = a[3].view.buf, g.tables = a[2].view.buf;
    if (check_gates(&g, a)) goto done;
    Py_BEGIN_ALLOW_THREADS
    share_out(g.tiles, do_tiles, &g);
    Py_END_ALLOW_THREADS
    result = Py_None;
    Py_INCREF(result);
done:
    give_back(a, 5);
    return result;
}

static PyMethodDef METHODS[] = {
    {"half_gates", half_gates, METH_VARARGS, "half_gates(state, shape, ands, first, schedule, tables, delta): garbles, or evaluates for None."},
    {NULL, NULL, 0, NULL},
};

int add_half_gates(PyObject *module) { return PyModule_AddFunctions(module, METHODS); }
