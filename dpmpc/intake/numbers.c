/* What a look asks of a column of numbers, in one pass: what `numbers.py` says. Its twin there is NumPy and gives the same counts and
the same bits. It runs on the machine of the records' owner, who sees them anyway: how long it takes depends on values. */

#include "../buffers.h"
#include <math.h>
#include <string.h>

enum { PRESENT, FINITE, WHOLE, AT_LEAST, AT_MOST, COUNTS }; /* what is counted */
enum { LEAST, GREATEST, NEXT, SECOND, LAST, BEFORE, ENDS };  /* ends of all, and the two least and greatest that are no codes */
enum { REGISTERS = 4096, DIRECT = 1000 };
enum { MANY, LOG_SLOTS, STATE };                  /* of a coding: how many codes, and the logarithm of slots in use */
enum { CODES = 1 << 16, MOST_SLOTS = 4 * CODES }; /* the first code is that of what is missing */

/* Which of the sorted codes a whole number is, -1 for none. `direct`: the answer for sizes below DIRECT; no other code is below
`far`. */
static inline int64_t code_of(double value, const double *codes, int64_t many, const int16_t *direct, double far) {
    if (value > -DIRECT && value < DIRECT) return direct[(int)value + DIRECT];
    if (fabs(value) < far) return -1;
    int64_t low = 0, high = many;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (codes[middle] < value) low = middle + 1;
        else high = middle;
    }
    return low < many && codes[low] == value ? low : -1;
}

/* Whether a finite number is whole, as those from 2^52 on are: `floor` is a call where a processor is of the oldest kind. */
static inline int is_whole(double value) {
    return fabs(value) >= 4503599627370496.0 || (double)(int64_t)value == value;
}

/* A 64-bit mixer of a number's bits: every bit of them decides about half of those that come out. */
static inline uint64_t mixed(uint64_t bits) {
    bits = (bits ^ (bits >> 32)) * UINT64_C(0x9E3779B97F4A7C15);
    bits = (bits ^ (bits >> 29)) * UINT64_C(0xBF58476D1CE4E5B9);
    return bits ^ (bits >> 32);
}

static void into(const double *values, const uint8_t *there, int64_t first, Py_ssize_t n, const double *codes, int64_t many,
                 int64_t *counts, double *ends, int64_t *of_code, uint8_t *registers) {
    int16_t direct[2 * DIRECT + 1];
    memset(direct, 0xFF, sizeof direct);
    double far = INFINITY;
    for (int64_t k = 0; k < many; k++)
        if (codes[k] > -DIRECT && codes[k] < DIRECT) direct[(int)codes[k] + DIRECT] = (int16_t)k;
        else if (fabs(codes[k]) < far) far = fabs(codes[k]);
    int64_t present = 0, finite = 0, whole = 0, at_least = counts[AT_LEAST], at_most = counts[AT_MOST];
    double least = ends[LEAST], greatest = ends[GREATEST];
    for (Py_ssize_t i = 0; i < n; i++) {
        if (there && !(there[(first + i) >> 3] >> ((first + i) & 7) & 1)) continue;
        double value = values[i] + 0.0; /* a zero has one sign */
        present++;
        uint64_t bits;
        memcpy(&bits, &value, sizeof bits);
        if (isnan(value)) bits = UINT64_C(0x7FF8) << 48;
        uint64_t hash = mixed(bits), rest = hash << 12 | 1 << 11; /* a bit that ends what is counted */
        uint8_t rank = (uint8_t)(__builtin_clzll(rest) + 1), *held = registers + (hash >> 52);
        if (*held < rank) *held = rank;
        if (!isfinite(value)) continue;
        finite++;
        if (value <= least) at_least = value < least ? 1 : at_least + 1, least = value;
        if (value >= greatest) at_most = value > greatest ? 1 : at_most + 1, greatest = value;
        if (is_whole(value)) {
            whole++;
            int64_t code = code_of(value, codes, many, direct, far);
            if (code >= 0) {
                of_code[code]++;
                continue;
            }
        }
        if (value < ends[SECOND]) {
            if (value < ends[NEXT]) ends[SECOND] = ends[NEXT], ends[NEXT] = value;
            else if (value > ends[NEXT]) ends[SECOND] = value;
        }
        if (value > ends[BEFORE]) {
            if (value > ends[LAST]) ends[BEFORE] = ends[LAST], ends[LAST] = value;
            else if (value < ends[LAST]) ends[BEFORE] = value;
        }
    }
    counts[PRESENT] += present, counts[FINITE] += finite, counts[WHOLE] += whole;
    counts[AT_LEAST] = at_least, counts[AT_MOST] = at_most, ends[LEAST] = least, ends[GREATEST] = greatest;
}

static PyObject *look(PyObject *self, PyObject *args) {
    PyObject *objects[7], *result = NULL;
    Py_buffer a[7] = {{0}};
    Py_ssize_t first;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOnOOOOO", objects, objects + 1, &first, objects + 2, objects + 3, objects + 4, objects + 5,
                          objects + 6))
        return NULL;
    int some = objects[1] != Py_None;
    if (taken(a, objects[0], 'd', 0, 0) || taken(a + 2, objects[2], 'd', 0, 0)) goto end;
    Py_ssize_t n = a[0].len / 8, many = a[2].len / 8;
    if (first < 0 || first > PY_SSIZE_T_MAX - 7 - n || many > INT16_MAX) {
        PyErr_SetString(PyExc_ValueError, "codes are few, and places begin at 0");
        goto end;
    }
    if ((some && taken(a + 1, objects[1], 'B', 0, (first + n + 7) / 8)) || taken(a + 3, objects[3], 'q', 1, COUNTS) ||
        taken(a + 4, objects[4], 'd', 1, ENDS) || taken(a + 5, objects[5], 'q', 1, many) ||
        taken(a + 6, objects[6], 'B', 1, REGISTERS))
        goto end;
    Py_BEGIN_ALLOW_THREADS;
    into(a[0].buf, some ? a[1].buf : NULL, first, n, a[2].buf, many, a[3].buf, a[4].buf, a[5].buf, a[6].buf);
    Py_END_ALLOW_THREADS;
    result = Py_NewRef(Py_None);
end:
    released(a, 7);
    return result;
}

static inline uint64_t slot_of(uint64_t bits, int64_t log_slots) {
    return ((bits * UINT64_C(0x9E3779B97F4A7C15) ^ bits >> 29) * UINT64_C(0xBF58476D1CE4E5B9)) >> (64 - log_slots);
}

/* The codes of some values, each the place where its bits were first met; how many were taken in, until there are too many.
A slot has a code, 0 for none. */
static Py_ssize_t into_codes(const double *values, const uint8_t *there, int64_t first, Py_ssize_t n, int64_t *state, uint16_t *slots,
                             int64_t *entries, int64_t *counts, uint16_t *out) {
    int64_t many = state[MANY], log_slots = state[LOG_SLOTS];
    uint64_t mask = (UINT64_C(1) << log_slots) - 1;
    Py_ssize_t i = 0;
    for (; i < n; i++) {
        uint64_t code = 0;
        if (!there || there[(first + i) >> 3] >> ((first + i) & 7) & 1) {
            uint64_t bits;
            memcpy(&bits, values + i, sizeof bits);
            uint64_t at = slot_of(bits, log_slots);
            while ((code = slots[at]) && (uint64_t)entries[code] != bits) at = (at + 1) & mask;
            if (!code) {
                if (many == CODES) break;
                code = (uint64_t)many++;
                entries[code] = (int64_t)bits;
                slots[at] = (uint16_t)code;
                if (4 * many > (int64_t)mask && log_slots < 18) { /* few meet others: a step that is not foreseen costs most */
                    mask = (UINT64_C(1) << ++log_slots) - 1;
                    memset(slots, 0, (size_t)(mask + 1) * sizeof *slots);
                    for (int64_t k = 1; k < many; k++) {
                        uint64_t to = slot_of((uint64_t)entries[k], log_slots);
                        while (slots[to]) to = (to + 1) & mask;
                        slots[to] = (uint16_t)k;
                    }
                }
            }
        }
        counts[code]++;
        out[i] = (uint16_t)code;
    }
    state[MANY] = many, state[LOG_SLOTS] = log_slots;
    return i;
}

static PyObject *encode(PyObject *self, PyObject *args) {
    PyObject *objects[7], *result = NULL;
    Py_buffer a[7] = {{0}};
    Py_ssize_t first, done;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOnOOOOO", objects, objects + 1, &first, objects + 2, objects + 3, objects + 4, objects + 5,
                          objects + 6))
        return NULL;
    int some = objects[1] != Py_None;
    if (taken(a, objects[0], 'd', 0, 0) || taken(a + 2, objects[2], 'q', 1, STATE)) goto end;
    Py_ssize_t n = a[0].len / 8;
    const int64_t *state = a[2].buf;
    if (first < 0 || first > PY_SSIZE_T_MAX - 7 - n || state[MANY] < 1 || state[MANY] > CODES || state[LOG_SLOTS] < 10 || state[LOG_SLOTS] > 18 ||
        4 * (state[MANY] - 1) > INT64_C(1) << state[LOG_SLOTS]) {
        PyErr_SetString(PyExc_ValueError, "codes are counted from 1, and places begin at 0");
        goto end;
    }
    if ((some && taken(a + 1, objects[1], 'B', 0, (first + n + 7) / 8)) || taken(a + 3, objects[3], 'H', 1, MOST_SLOTS) ||
        taken(a + 4, objects[4], 'q', 1, CODES) || taken(a + 5, objects[5], 'q', 1, CODES) || taken(a + 6, objects[6], 'H', 1, n))
        goto end;
    Py_BEGIN_ALLOW_THREADS;
    done = into_codes(a[0].buf, some ? a[1].buf : NULL, first, n, a[2].buf, a[3].buf, a[4].buf, a[5].buf, a[6].buf);
    Py_END_ALLOW_THREADS;
    result = PyLong_FromSsize_t(done);
end:
    released(a, 7);
    return result;
}

static PyMethodDef METHODS[] = {
    {"encode", encode, METH_VARARGS,
     "encode(values, there, first, state, slots, entries, counts, out): the codes of values; how many there was room for."},
    {"look", look, METH_VARARGS,
     "look(values, there, first, codes, counts, ends, of_code, registers): adds what these values are to what is known of a column."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, "_numbers", "Looks at numbers.", -1, METHODS, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__numbers(void) { return PyModule_Create(&MODULE); }
