/* A program by half-gates, on labels. Twin and meaning: two_servers/half_gates.py.

Labels are of 16 bytes, a lane's beside the next one's, so a row has two words a lane. A tile is a piece of every slot's row;
it goes through all layers while it is in a core's cache, and its place is used again for the next one. A gate's two
ciphertexts are rows of labels, one after the other. */

#include "kernels.h"

enum { LANES_AT_ONCE = 16, LAYER = 4 };

typedef struct {
    uint64_t *state; /* (tiles, slots, tile words), of which a thread uses one tile at a time */
    Py_ssize_t slots, tile, words;
    const int32_t *script; /* for each layer: how many random bits, masks' bits, numbers of XORs, and ANDs; those */
    Py_ssize_t script_size;
    const int32_t *outputs;
    Py_ssize_t output_count;
    const uint64_t *base, *other, *bits; /* rows of `row` words (bits: half as many), of which those from `at` on are taken */
    uint64_t *made;
    const uint64_t *fixes;
    Py_ssize_t row, at;
    const uint64_t *masks;
    uint64_t *tables, *ends;
    const uint64_t *delta; /* NULL: evaluates */
    const uint8_t *keys;   /* round keys of every half */
    const uint64_t *tweaks; /* of every lane, for all halves */
} circuit;

#define BODY "half_gates_body.h"
#include "aes_units.h"

static void do_tiles(const void *of, Py_ssize_t begin, Py_ssize_t end) {
#ifndef NO_AES_UNIT
    const circuit *c = of;
    uint64_t *tile = c->state + begin * c->slots * c->tile;
    for (Py_ssize_t t = begin; t < end; t++) {
        const Py_ssize_t at = t * c->tile, words = c->words - at < c->tile ? c->words - at : c->tile;
        CHOOSE_AES(walk)(c, tile, at, words);
    }
#else
    (void)of, (void)begin, (void)end;
#endif
}

static int refuse(const char *what, Py_ssize_t got) {
    PyErr_Format(PyExc_ValueError, "%s; got %zd", what, got);
    return -1;
}

static int slots_in_range(const circuit *c, const int32_t *slots, Py_ssize_t count) {
    for (Py_ssize_t i = 0; i < count; i++)
        if (slots[i] < 0 || slots[i] >= c->slots) return refuse("slots must lie in the state", slots[i]);
    return 0;
}

/* Counts random bits, masks' bits and ANDs of a script whose numbers all lie where they may. 0, or -1 with an exception. */
static int check_script(const circuit *c, Py_ssize_t counts[3]) {
    for (Py_ssize_t i = 0; i < c->script_size;) {
        const int32_t *layer = c->script + i;
        Py_ssize_t left = c->script_size - i - LAYER;
        for (int k = 0; k < LAYER; k++)
            if (left < 0 || layer[k] < 0 || layer[k] > left) return refuse("a layer has four counts, and as many numbers follow", i);
        const Py_ssize_t loaded = (Py_ssize_t)layer[0] + layer[1], size = loaded + layer[2] + 3 * (Py_ssize_t)layer[3];
        if (size > left) return refuse("a layer has four counts, and as many numbers follow", i);
        if (slots_in_range(c, layer + LAYER, loaded)) return -1;
        const int32_t *step = layer + LAYER + loaded, *end = step + layer[2];
        while (step < end) {
            if (end - step < 3 || step[1] < 1 || step[1] > end - step - 2) return refuse("XORs are a slot, how many operands, those", i);
            if (slots_in_range(c, step, 1) || slots_in_range(c, step + 2, step[1])) return -1;
            step += 2 + step[1];
        }
        if (slots_in_range(c, end, 3 * (Py_ssize_t)layer[3])) return -1;
        counts[0] += layer[0], counts[1] += layer[1], counts[2] += layer[3];
        i += LAYER + size;
    }
    return 0;
}

enum { STATE, SCRIPT, OUTPUTS, KEY, BASE, OTHER, BITS, FIXES, MASKS, TABLES, ENDS, DELTA, ALL };

/* 0, or -1 with an exception. */
static int check_sizes(const circuit *c, const array *a, Py_ssize_t counts[3]) {
    if (c->slots < 2 || c->slots > 1 << 24 || c->tile < 2 * LANES_AT_ONCE || c->tile % (2 * LANES_AT_ONCE) || c->tile > 1 << 24 ||
        c->words < 0 || c->words % (2 * LANES_AT_ONCE) || a[STATE].count != (c->words + c->tile - 1) / c->tile * c->slots * c->tile)
        return refuse("labels lie in slots, in tiles of a multiple of 16 lanes", a[STATE].count);
    if (c->at < 0 || c->at % 2 || c->row % 2 || c->row < 0 || c->at > c->row - c->words)
        return refuse("the lanes must lie in the rows of strings", c->at);
    if (check_script(c, counts) || slots_in_range(c, c->outputs, c->output_count)) return -1;
    if (a[BASE].count != counts[0] * c->row || (c->other && a[OTHER].count != a[BASE].count) ||
        (c->bits && a[BITS].count != a[BASE].count / 2))
        return refuse("a row of strings and bits is due for each random bit", a[BASE].count);
    if (a[FIXES].view.obj && a[FIXES].count != counts[0] * c->words)
        return refuse("a row of corrections is due for each random bit", a[FIXES].count);
    if (a[MASKS].count != counts[1] * c->words) return refuse("a row is due for each bit of a mask", a[MASKS].count);
    if (a[TABLES].count != 2 * counts[2] * c->words) return refuse("two rows of ciphertexts are due for each AND", a[TABLES].count);
    if (a[ENDS].count != c->output_count * c->words) return refuse("a row is due for each output", a[ENDS].count);
    return 0;
}

#define LANES ((uint64_t)1 << 63) /* the key stream's word where the lanes' tweaks begin: block 2^62 */

/* The round keys of every half, key i from block i of the key stream, and then the tweaks of all lanes, of so many words. NULL
with an exception where there is no memory. */
static uint8_t *keys_of(const uint8_t *schedule, Py_ssize_t halves, Py_ssize_t words) {
    const Py_ssize_t most = 2 * halves > words ? 2 * halves : words;
    uint8_t *keys = PyMem_Malloc((size_t)(halves * AES_SCHEDULE + most * 8) + 1);
    if (!keys) {
        PyErr_NoMemory();
        return NULL;
    }
    uint64_t *made = (uint64_t *)(keys + halves * AES_SCHEDULE);
    aes_stream(schedule, 0, NULL, made, 2 * halves);
    for (Py_ssize_t i = 0; i < halves; i++) aes_expand((const uint8_t *)(made + 2 * i), keys + i * AES_SCHEDULE);
    aes_stream(schedule, LANES, NULL, made, words);
    return keys;
}

static int take_some(array *a, PyObject *object, const char *name, int writable) {
    return object == Py_None ? 0 : take(a, object, name, 'Q', writable, 0);
}

static PyObject *half_gates(PyObject *self, PyObject *args) {
    PyObject *o[ALL], *result = NULL;
    uint8_t *keys = NULL;
    Py_ssize_t counts[3] = {0};
    circuit c = {0};
    array a[ALL] = {0};
    (void)self;
    if (!PyArg_ParseTuple(args, "O(nnn)OOO(OOOOnn)OOOO", &o[STATE], &c.slots, &c.tile, &c.words, &o[SCRIPT], &o[OUTPUTS], &o[KEY], &o[BASE],
                          &o[OTHER], &o[BITS], &o[FIXES], &c.row, &c.at, &o[MASKS], &o[TABLES], &o[ENDS], &o[DELTA]))
        return NULL;
    const int garbles = o[DELTA] != Py_None;
    if (take(&a[STATE], o[STATE], "state", 'Q', 1, 0) || take(&a[SCRIPT], o[SCRIPT], "script", 'i', 0, 0) ||
        take(&a[OUTPUTS], o[OUTPUTS], "outputs", 'i', 0, 0) || take_schedule(&a[KEY], o[KEY]) || take(&a[BASE], o[BASE], "base", 'Q', 0, 0) ||
        take_some(&a[OTHER], o[OTHER], "other", 0) || take_some(&a[BITS], o[BITS], "bits", 0) ||
        take_some(&a[FIXES], o[FIXES], "fixes", garbles) || take(&a[MASKS], o[MASKS], "masks", 'Q', 0, 0) ||
        take(&a[TABLES], o[TABLES], "tables", 'Q', garbles, 0) || take(&a[ENDS], o[ENDS], "ends", 'Q', 1, 0) ||
        (garbles && take(&a[DELTA], o[DELTA], "delta", 'Q', 0, 2)))
        goto done;
    for (int i = 0; i < ALL; i++)
        for (int j = 0; j < i; j++) {
            const int written = i == STATE || j == STATE || i == ENDS || (garbles && (i == TABLES || i == FIXES || j == TABLES || j == FIXES));
            if (written && a[i].view.obj && a[j].view.obj && apart(&a[i], &a[j], "what is read and what is written")) goto done;
        }
    c.state = a[STATE].view.buf, c.script = a[SCRIPT].view.buf, c.script_size = a[SCRIPT].count;
    c.outputs = a[OUTPUTS].view.buf, c.output_count = a[OUTPUTS].count;
    c.base = a[BASE].view.buf, c.other = a[OTHER].view.buf, c.bits = a[BITS].view.buf;
    c.masks = a[MASKS].view.buf, c.tables = a[TABLES].view.buf, c.ends = a[ENDS].view.buf, c.delta = a[DELTA].view.buf;
    if (garbles ? !c.other != !a[FIXES].view.obj : c.other || !c.bits != !a[FIXES].view.obj) {
        refuse("the garbler makes corrections of two strings, the evaluator takes them by its bits", garbles);
        goto done;
    }
    if (garbles)
        c.made = a[FIXES].view.buf;
    else
        c.fixes = a[FIXES].view.buf;
    if (check_sizes(&c, a, counts) || !(keys = keys_of(a[KEY].view.buf, 2 * counts[2], c.words))) goto done;
    c.keys = keys, c.tweaks = (const uint64_t *)(keys + 2 * counts[2] * AES_SCHEDULE);
    Py_BEGIN_ALLOW_THREADS
    share_out((c.words + c.tile - 1) / c.tile, do_tiles, &c);
    Py_END_ALLOW_THREADS
    result = Py_None;
    Py_INCREF(result);
done:
    PyMem_Free(keys);
    give_back(a, ALL);
    return result;
}

static PyMethodDef METHODS[] = {
    {"half_gates", half_gates, METH_VARARGS,
     "half_gates(state, shape, script, outputs, schedule, (base, other, bits, fixes, row, at), masks, tables, ends, delta): garbles, or "
     "evaluates for None."},
    {NULL, NULL, 0, NULL},
};

int add_half_gates(PyObject *module) { return PyModule_AddFunctions(module, METHODS); }
