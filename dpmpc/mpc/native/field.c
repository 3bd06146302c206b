/* Sums of products mod p = 2^61 - 1 with public factors. Twin and meaning: residues.py. */

#include "kernels.h"

#define P ((1ull << 61) - 1)
#define MOST 64 /* terms */
#define BLOCK 512

/* For any word x and a factor below p: x factor mod p, as a number below 2^62 + 8. */
static inline uint64_t product(uint64_t x, uint64_t factor) {
    uint128 z = (uint128)x * factor; /* below 2^125 */
    uint64_t high = (uint64_t)(z >> 61);
    return ((uint64_t)z & P) + (high & P) + (high >> 61);
}

/* out = constant + the sum of factor times value over the terms, reduced. A folded sum is below 2^61 + 4, and a product
more below 2^63. */
static void combine(const uint64_t *const *values, const uint64_t *factors, int terms, uint64_t constant, uint64_t *out, Py_ssize_t count) {
    for (Py_ssize_t at = 0; at < count; at += BLOCK) {
        Py_ssize_t size = count - at < BLOCK ? count - at : BLOCK;
        uint64_t sum[BLOCK];
        for (Py_ssize_t i = 0; i < size; i++) sum[i] = constant;
        for (int k = 0; k < terms; k++) {
            const uint64_t *value = values[k] + at, factor = factors[k];
            for (Py_ssize_t i = 0; i < size; i++) {
                uint64_t s = sum[i] + product(value[i], factor);
                sum[i] = (s & P) + (s >> 61);
            }
        }
        for (Py_ssize_t i = 0; i < size; i++) { /* at most p too much, taken off without a branch */
            uint64_t s = sum[i], less = s - P;
            out[at + i] = less + (P & (0 - (less >> 63)));
        }
    }
}

typedef struct {
    const uint64_t *const *values, *factors;
    uint64_t constant, *out;
    int terms;
    Py_ssize_t count;
} combination;

static void combine_blocks(const void *of, Py_ssize_t begin, Py_ssize_t end) {
    const combination *c = of;
    const uint64_t *values[MOST];
    Py_ssize_t at = begin * BLOCK, last = end * BLOCK < c->count ? end * BLOCK : c->count;
    for (int k = 0; k < c->terms; k++) values[k] = c->values[k] + at;
    combine(values, c->factors, c->terms, c->constant, c->out + at, last - at);
}

static PyObject *weighted_sum(PyObject *self, PyObject *args) {
    PyObject *values, *factors, *out, *result = NULL;
    unsigned long long constant;
    array a[MOST + 2] = {0};
    const uint64_t *pointers[MOST];
    (void)self;
    if (!PyArg_ParseTuple(args, "O!OKO", &PyTuple_Type, &values, &factors, &constant, &out)) return NULL;
    Py_ssize_t terms = PyTuple_Size(values);
    if (terms > MOST) return PyErr_Format(PyExc_ValueError, "at most %d terms are added up; got %zd", MOST, terms);
    if (take(&a[0], factors, "factors", 'Q', 0, terms) || take(&a[1], out, "out", 'Q', 1, 0)) goto done;
    const uint64_t *f = a[0].view.buf;
    for (Py_ssize_t k = 0; k < terms; k++) {
        if (take(&a[2 + k], PyTuple_GetItem(values, k), "values", 'Q', 0, 0) || apart(&a[2 + k], &a[1], "values and out")) goto done;
        if (a[2 + k].count != a[1].count || f[k] >= P) {
            PyErr_Format(PyExc_ValueError, "values must hold %zd words, as out, and factors be below 2^61 - 1", a[1].count);
            goto done;
        }
        pointers[k] = a[2 + k].view.buf;
    }
    if (constant >= P || apart(&a[0], &a[1], "factors and out")) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "the constant must be below 2^61 - 1");
        goto done;
    }
    const combination whole = {pointers, f, constant, a[1].view.buf, (int)terms, a[1].count};
    Py_BEGIN_ALLOW_THREADS
    share_out((a[1].count + BLOCK - 1) / BLOCK, combine_blocks, &whole);
    Py_END_ALLOW_THREADS
    result = Py_None;
    Py_INCREF(result);
done:
    give_back(a, MOST + 2);
    return result;
}

static PyMethodDef METHODS[] = {
    {"weighted_sum", weighted_sum, METH_VARARGS, "weighted_sum(values, factors, constant, out): mod 2^61 - 1."},
    {NULL, NULL, 0, NULL},
};

int add_field(PyObject *module) { return PyModule_AddFunctions(module, METHODS); }
