/* Layers of a program on tiles of slots. Twin and meaning: layers.py.

State: (tiles, slots, components, tile words). A tile is so many words of every slot, next to each other, so that what a
layer does to it stays in a core's cache. Outside, an array of rows has `words` words a row; a tile is a piece of each.
Which slot is read or written when depends on the program alone. */

#include "kernels.h"

/* Rows of words: in memory, or a stretch of a key stream that is made where it is wanted. */
typedef struct {
    const uint64_t *words;
    const uint8_t *schedule;
    uint64_t position;
} source;

typedef struct {
    const int32_t *slots;
    Py_ssize_t count;
    int comp;
    Py_ssize_t first;
    int count_sources; /* sources first, first + 1, ..., of `count` rows each, are added up; none gives zeros */
    int added;         /* to what is in the slots */
    uint64_t *copy;    /* what is in the slots then goes here, too, or NULL */
} deposit;

typedef struct {
    int comp;
    source of;
} mask;

typedef struct {
    uint64_t *state;
    Py_ssize_t tiles, slots, comps, tile, words;
    const deposit *deposits;
    Py_ssize_t deposit_count;
    const source *sources; /* of all deposits */
    const int32_t *xors; /* out, how many operands, those; for each */
    Py_ssize_t xor_count; /* numbers in xors */
    const int32_t *ands; /* (count, 3) */
    Py_ssize_t and_count;
    const int32_t *pairs;
    Py_ssize_t pair_count;
    int target;        /* the component that takes the message; each mask is of and_count rows and for one component */
    const mask *masks; /* first those that are added to the message and to their component, which they are the first in */
    int own_count, mask_count;
    uint64_t *message; /* (and_count, words), or NULL */
    uint64_t *kept[3]; /* where left and right operands are kept, (components, part), and the target's results; or NULL */
    Py_ssize_t part, first;
    int turned;
} layer;

#define BODY "program_body.h"
#include "variants.h"

static int in_range(const int32_t *values, Py_ssize_t count, Py_ssize_t end, const char *name) {
    int32_t most = -1, least = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (values[i] > most) most = values[i];
        if (values[i] < least) least = values[i];
    }
    if (least >= 0 && most < end) return 0;
    PyErr_Format(PyExc_ValueError, "%s must lie in 0 .. %zd; got %d .. %d", name, end - 1, (int)least, (int)most);
    return -1;
}

/* Lists within an array: a first number, how many follow (at least one), those; all but the lengths below `end`. */
static int check_lists(const int32_t *lists, Py_ssize_t size, Py_ssize_t end, const char *name) {
    for (Py_ssize_t i = 0; i < size; i += 2 + lists[i + 1]) {
        if (size - i < 3 || lists[i + 1] < 1 || lists[i + 1] > size - i - 2) {
            PyErr_Format(PyExc_ValueError, "%s must be lists: a number, how many follow, those", name);
            return -1;
        }
        if (in_range(lists + i, 1, end, name) || in_range(lists + i + 2, lists[i + 1], end, name)) return -1;
    }
    return 0;
}

/* The state's shape (slots, components, tile words) and the words of a row. */
static int take_state(layer *w, array *a, PyObject *state, Py_ssize_t slots, Py_ssize_t comps, Py_ssize_t tile, Py_ssize_t words) {
    if (slots < 1 || comps < 1 || tile < 8 || tile % 8 || words < 0 || slots > 1 << 24 || comps > 1 << 16 || tile > 1 << 24) {
        PyErr_Format(PyExc_ValueError, "a state has slots, components and tiles of a multiple of 8 words; got %zd, %zd, %zd", slots, comps,
                     tile);
        return -1;
    }
    if (take(a, state, "state", 'Q', 1, 0)) return -1;
    Py_ssize_t size = slots * comps * tile;
    w->state = a->view.buf, w->slots = slots, w->comps = comps, w->tile = tile, w->words = words;
    w->tiles = a->count / size;
    if (w->tiles * size != a->count || w->tiles != (words + tile - 1) / tile) {
        PyErr_Format(PyExc_ValueError, "state must hold %zd tiles of %zd words; got %zd words", (words + tile - 1) / tile, size, a->count);
        return -1;
    }
    return 0;
}

/* A block of `rows` rows, apart from the state. */
static int take_rows(const layer *w, array *a, PyObject *object, const array *state, const char *name, int writable, Py_ssize_t rows) {
    if (take(a, object, name, 'Q', writable, 0)) return -1;
    if (a->count != rows * w->words) {
        PyErr_Format(PyExc_ValueError, "%s must hold %zd rows of %zd words; got %zd words", name, rows, w->words, a->count);
        return -1;
    }
    return apart(a, state, "the state and what is put in or out");
}

/* Rows in an array, or (round keys, position) of a key stream. */
static int take_source(const layer *w, source *s, array *a, PyObject *object, const array *state, const char *name, Py_ssize_t rows) {
    PyObject *schedule;
    unsigned long long position;
    if (!PyTuple_Check(object)) {
        if (take_rows(w, a, object, state, name, 0, rows)) return -1;
        s->words = a->view.buf;
        return 0;
    }
    if (!PyArg_ParseTuple(object, "OK", &schedule, &position) || take_schedule(a, schedule)) return -1;
    s->schedule = a->view.buf;
    s->position = position;
    return 0;
}

static void run_tiles(const void *w, Py_ssize_t begin, Py_ssize_t end) { CHOOSE(run_layer)(w, begin, end); }

enum { STATE, XORS, ANDS, PAIRS, MESSAGE, LEFT, RIGHT, RESULTS, FIXED };

/* Where the ANDs' operands and the target's results are kept: (left, right, results, first row, turned), or None. */
static int take_kept(layer *w, array *fixed, PyObject *kept) {
    PyObject *given[3];
    if (kept == Py_None) return 0;
    if (!PyTuple_Check(kept)) {
        PyErr_SetString(PyExc_TypeError, "kept must be a tuple or None");
        return -1;
    }
    if (!PyArg_ParseTuple(kept, "OOOnp", &given[0], &given[1], &given[2], &w->first, &w->turned)) return -1;
    for (int side = 0; side < 3; side++) {
        array *a = &fixed[LEFT + side];
        const Py_ssize_t comps = side < 2 ? w->comps : 1;
        if (take(a, given[side], "kept", 'Q', 1, 0) || apart(&fixed[STATE], a, "state and what is kept")) return -1;
        if (!side) w->part = a->count / comps;
        if (w->part * comps != a->count || w->first < 0 || (w->first + w->and_count) * w->words > w->part) {
            PyErr_Format(PyExc_ValueError, "kept must hold rows %zd .. %zd of %zd words for each component, in arrays of one size; got "
                         "%zd words", w->first, w->first + w->and_count, w->words, a->count);
            return -1;
        }
        for (int other = 0; other < side; other++)
            if (apart(a, &fixed[LEFT + other], "what is kept")) return -1;
        w->kept[side] = a->view.buf;
    }
    return 0;
}

/* Masks (component, source) of the layer's ANDs, to `masks`; how many are taken goes to `taken`. */
static int take_masks(const layer *w, mask *masks, array *more, Py_ssize_t *taken, PyObject *given, const array *state) {
    PyObject *of;
    for (Py_ssize_t k = 0; k < PyTuple_Size(given); k++) {
        if (!PyArg_ParseTuple(PyTuple_GetItem(given, k), "iO", &masks[k].comp, &of)) return -1;
        if (masks[k].comp < 0 || masks[k].comp >= w->comps) {
            PyErr_Format(PyExc_ValueError, "the component of a mask must lie in 0 .. %zd; got %d", w->comps - 1, masks[k].comp);
            return -1;
        }
        if (take_source(w, &masks[k].of, &more[(*taken)++], of, state, "a mask", w->and_count)) return -1;
    }
    return 0;
}

/* Every own mask is the first thing in its component, and the message in its; 0, or -1 with an exception. */
static int check_masks(const layer *w) {
    if (w->target < 0 || w->target >= w->comps) {
        PyErr_Format(PyExc_ValueError, "the component of the message must lie in 0 .. %zd; got %d", w->comps - 1, w->target);
        return -1;
    }
    for (int k = 0; k < w->own_count; k++)
        for (int j = 0; j <= k; j++)
            if (w->masks[k].comp == (j < k ? w->masks[j].comp : w->target)) {
                PyErr_SetString(PyExc_ValueError, "a component takes one own mask, or the message");
                return -1;
            }
    return 0;
}

static PyObject *run(PyObject *self, PyObject *args) {
    PyObject *state, *deposits, *xors, *ands, *pairs, *own, *others, *message, *kept, *where, *given, *copy, *result = NULL;
    int comp, added;
    Py_ssize_t slots, comps, tile, words;
    layer w = {0};
    array fixed[FIXED] = {0}, *more = NULL;
    deposit *list = NULL;
    source *sources = NULL;
    mask *masks = NULL;
    Py_ssize_t more_count = 0;
    (void)self;
    if (!PyArg_ParseTuple(args, "O(nnnn)O!OOOiO!O!OO", &state, &slots, &comps, &tile, &words, &PyTuple_Type, &deposits, &xors, &ands, &pairs,
                          &w.target, &PyTuple_Type, &own, &PyTuple_Type, &others, &message, &kept))
        return NULL;
    if (take_state(&w, &fixed[STATE], state, slots, comps, tile, words)) goto done;
    if (take(&fixed[XORS], xors, "xors", 'i', 0, 0) || take(&fixed[ANDS], ands, "ands", 'i', 0, 0) ||
        take(&fixed[PAIRS], pairs, "pairs", 'i', 0, 0))
        goto done;
    w.xors = fixed[XORS].view.buf, w.xor_count = fixed[XORS].count;
    w.ands = fixed[ANDS].view.buf, w.and_count = fixed[ANDS].count / 3;
    w.pairs = fixed[PAIRS].view.buf, w.pair_count = fixed[PAIRS].count;
    if (check_lists(w.xors, w.xor_count, slots, "xors") || check_lists(w.pairs, w.pair_count, comps, "pairs")) goto done;
    if (fixed[ANDS].count % 3) {
        PyErr_SetString(PyExc_ValueError, "ands must hold rows of three slots");
        goto done;
    }
    if (in_range(w.ands, 3 * w.and_count, slots, "slots of ands")) goto done;
    Py_ssize_t count = 0;
    w.own_count = (int)PyTuple_Size(own), w.mask_count = w.own_count + (int)PyTuple_Size(others);
    w.deposit_count = PyTuple_Size(deposits);
    for (Py_ssize_t d = 0; d < w.deposit_count; d++) {
        if (!PyArg_ParseTuple(PyTuple_GetItem(deposits, d), "OiO!pO", &where, &comp, &PyTuple_Type, &given, &added, &copy)) goto done;
        count += PyTuple_Size(given);
    }
    more = PyMem_Calloc((size_t)(2 * w.deposit_count + count + w.mask_count) + 1, sizeof *more);
    list = PyMem_Calloc((size_t)w.deposit_count + 1, sizeof *list);
    sources = PyMem_Calloc((size_t)count + 1, sizeof *sources);
    masks = PyMem_Calloc((size_t)w.mask_count + 1, sizeof *masks);
    if (!more || !list || !sources || !masks) {
        PyErr_NoMemory();
        goto done;
    }
    w.deposits = list, w.sources = sources, w.masks = masks;
    count = 0;
    for (Py_ssize_t d = 0; d < w.deposit_count; d++) {
        if (!PyArg_ParseTuple(PyTuple_GetItem(deposits, d), "OiO!pO", &where, &comp, &PyTuple_Type, &given, &added, &copy)) goto done;
        array *a = &more[more_count++];
        if (take(a, where, "slots", 'i', 0, 0) || in_range(a->view.buf, a->count, slots, "slots of a deposit")) goto done;
        list[d] = (deposit){a->view.buf, a->count, comp, count, (int)PyTuple_Size(given), added, NULL};
        if (comp < 0 || comp >= comps) {
            PyErr_Format(PyExc_ValueError, "the component of a deposit must lie in 0 .. %zd; got %d", comps - 1, comp);
            goto done;
        }
        for (Py_ssize_t k = 0; k < list[d].count_sources; k++)
            if (take_source(&w, &sources[count++], &more[more_count++], PyTuple_GetItem(given, k), &fixed[STATE], "a deposit", a->count))
                goto done;
        if (copy != Py_None) {
            array *b = &more[more_count++];
            if (take_rows(&w, b, copy, &fixed[STATE], "a copy", 1, a->count)) goto done;
            for (Py_ssize_t k = 0; k < more_count - 1; k++)
                if (apart(&more[k], b, "a copy and what is added up")) goto done;
            list[d].copy = b->view.buf;
        }
    }
    if (w.and_count) {
        if (take_masks(&w, masks, more, &more_count, own, &fixed[STATE]) ||
            take_masks(&w, masks + w.own_count, more, &more_count, others, &fixed[STATE]) || check_masks(&w))
            goto done;
        if (message != Py_None && take_rows(&w, &fixed[MESSAGE], message, &fixed[STATE], "message", 1, w.and_count)) goto done;
        w.message = fixed[MESSAGE].view.buf;
        if (w.own_count && !w.message) {
            PyErr_SetString(PyExc_ValueError, "own masks are for a message");
            goto done;
        }
        for (Py_ssize_t k = 0; w.message && k < more_count; k++)
            if (apart(&more[k], &fixed[MESSAGE], "the message and what is added up")) goto done;
    }
    if (take_kept(&w, fixed, kept)) goto done;
    for (int side = LEFT; side <= RESULTS; side++)
        for (Py_ssize_t k = 0; w.kept[0] && k < more_count; k++)
            if (apart(&more[k], &fixed[side], "what is kept and what is added up")) goto done;
    Py_BEGIN_ALLOW_THREADS
    share_out(w.tiles, run_tiles, &w);
    Py_END_ALLOW_THREADS
    result = Py_None;
    Py_INCREF(result);
done:
    give_back(fixed, FIXED);
    if (more) give_back(more, (int)more_count);
    PyMem_Free(more);
    PyMem_Free(list);
    PyMem_Free(sources);
    PyMem_Free(masks);
    return result;
}

static PyObject *gather(PyObject *self, PyObject *args) {
    PyObject *state, *which, *out, *result = NULL;
    Py_ssize_t slots, comps, tile, words;
    layer w = {0};
    array a[3] = {0};
    (void)self;
    if (!PyArg_ParseTuple(args, "O(nnnn)OO", &state, &slots, &comps, &tile, &words, &which, &out)) return NULL;
    if (take_state(&w, &a[0], state, slots, comps, tile, words) || take(&a[1], which, "slots", 'i', 0, 0) ||
        in_range(a[1].view.buf, a[1].count, slots, "slots") ||
        take_rows(&w, &a[2], out, &a[0], "out", 1, a[1].count * comps))
        goto done;
    Py_BEGIN_ALLOW_THREADS
    CHOOSE(gather_rows)(&w, a[1].view.buf, a[1].count, a[2].view.buf);
    Py_END_ALLOW_THREADS
    result = Py_None;
    Py_INCREF(result);
done:
    give_back(a, 3);
    return result;
}

enum { MOST_ADDED = 16 };

static PyObject *add_sources(PyObject *self, PyObject *args) {
    PyObject *given, *out, *result = NULL;
    layer w = {0};
    array a[MOST_ADDED + 2] = {0};
    source sources[MOST_ADDED] = {{0}};
    (void)self;
    if (!PyArg_ParseTuple(args, "O!O", &PyTuple_Type, &given, &out)) return NULL;
    Py_ssize_t count = PyTuple_Size(given);
    if (count > MOST_ADDED) return PyErr_Format(PyExc_ValueError, "at most %d sources are added up; got %zd", (int)MOST_ADDED, count);
    if (take(&a[0], out, "out", 'Q', 1, 0)) goto done;
    w.words = a[0].count;
    for (Py_ssize_t k = 0; k < count; k++)
        if (take_source(&w, &sources[k], &a[1 + k], PyTuple_GetItem(given, k), &a[0], "a source", 1)) goto done;
    Py_BEGIN_ALLOW_THREADS
    CHOOSE(add_up)(sources, (int)count, 0, NULL, a[0].view.buf, w.words);
    Py_END_ALLOW_THREADS
    result = Py_None;
    Py_INCREF(result);
done:
    give_back(a, MOST_ADDED + 2);
    return result;
}

static PyMethodDef METHODS[] = {
    {"add_sources", add_sources, METH_VARARGS, "add_sources(sources, out): their sum."},
    {"run_layer", run, METH_VARARGS, "run_layer(state, shape, deposits, xors, ands, pairs, target, own, others, message, kept)."},
    {"gather", gather, METH_VARARGS, "gather(state, shape, slots, out): rows (slot, component) of `words` words."},
    {NULL, NULL, 0, NULL},
};

int add_program(PyObject *module) { return PyModule_AddFunctions(module, METHODS); }
