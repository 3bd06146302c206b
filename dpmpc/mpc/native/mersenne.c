/* Arithmetic mod p = 2^61 - 1 on arrays of words. Twin and meaning: mersenne.py. */

#include "kernels.h"

/* Vectors go by value between inlined functions only, so no other compiler's convention for them matters. */
#pragma GCC diagnostic ignored "-Wpsabi"

#define P ((uint64_t)0x1FFFFFFFFFFFFFFF)
#define LOW29 (((uint64_t)1 << 29) - 1)
#define LOW30 (((uint64_t)1 << 30) - 1)
#define LOW31 (((uint64_t)1 << 31) - 1)
#define MOST_ROWS 32 /* of an extraction: rotations stay below 32 bits */

/* a^(2^59 - 1) from a: squarings before each product, with a where one, else with what was squared. Exponents 2^2 - 1,
2^3 - 1, then 6, 7, 14, 28, 29, 58, 59 ones. */
static const int CHAIN[] = {1, 1, 3, 1, 7, 14, 1, 29, 1};
#define CHAIN_STEPS 9


#define TILE 256    /* columns whose sums stay in the first cache */
#define BODY "mersenne_body.h"
#include "variants.h"
#if DPMPC_X86
#define TARGET __attribute__((target("avx2")))
#define NAME(f) f##_avx2
#define VEC words4
#define WIDTH 4
#define LOW_PRODUCT(a, b) ((words4)_mm256_mul_epu32((__m256i)(a), (__m256i)(b)))
#include "mersenne_products.h"

#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#define NAME(f) f##_avx512
#define VEC words8
#define WIDTH 8
#define LOW_PRODUCT(a, b) ((words8)_mm512_mul_epu32((__m512i)(a), (__m512i)(b)))
#include "mersenne_products.h"
#define WITH_PRODUCTS(f) (HAS(HAS_AVX512) ? f##_avx512 : HAS(HAS_AVX2) ? f##_avx2 : f##_words)
#else
#define WITH_PRODUCTS(f) f##_words
#endif

/* Products of words: below 2^122, so that 32 of them and a reduced sum fit 128 bits. */
static inline uint128 folded(uint128 x) { return (x & P) + (x >> 61); }

static inline uint64_t residue(uint128 x) {
    uint64_t y = (uint64_t)folded(folded(x)); /* below 2^61 + 2^6 + 1 */
    y = (y & P) + (y >> 61);
    return y - (P & -(uint64_t)(y >= P));
}

static inline uint64_t times(uint64_t a, uint64_t b) { return residue((uint128)a * b); }

/* out[m] = scale * (sum over k of x[k][m] * y[k][m]) + add[m] + offset, rows of `columns` words; x and y may have one row for all m. */
static void dot_words(const uint64_t *x, const uint64_t *y, const uint64_t *add, uint64_t *out, Py_ssize_t terms, Py_ssize_t rows,
                      Py_ssize_t columns, Py_ssize_t x_rows, Py_ssize_t y_rows, uint64_t scale, uint64_t offset) {
    for (Py_ssize_t m = 0; m < rows; m++) {
        const uint64_t *x0 = x + (x_rows > 1 ? m : 0) * columns, *y0 = y + (y_rows > 1 ? m : 0) * columns;
        for (Py_ssize_t i = 0; i < columns; i++) {
            uint128 sum = 0;
            for (Py_ssize_t k = 0; k < terms; k++) {
                sum += (uint128)x0[k * x_rows * columns + i] * y0[k * y_rows * columns + i];
                if (k % 32 == 31) sum = folded(sum);
            }
            if (scale != 1) sum = (uint128)residue(sum) * scale;
            sum += offset + (uint128)(add ? add[m * columns + i] : 0);
            out[m * columns + i] = residue(sum);
        }
    }
}

/* out[r] = sum over k of c[r][k] x[k]; `columnwise` holds 4 * terms words. */
static void matrix_words(const uint64_t *c, const uint64_t *x, uint64_t *out, Py_ssize_t rows, Py_ssize_t terms, Py_ssize_t columns,
                         void *columnwise) {
    uint64_t *tile = columnwise;
    for (Py_ssize_t i = 0; i < columns; i += 4) {
        int width = columns - i < 4 ? (int)(columns - i) : 4;
        for (Py_ssize_t k = 0; k < terms; k++)
            for (int j = 0; j < 4; j++) tile[4 * k + j] = j < width ? x[k * columns + i + j] : 0;
        for (Py_ssize_t r = 0; r < rows; r++) {
            uint128 sum[4] = {0};
            for (Py_ssize_t k = 0; k < terms; k++) {
                for (int j = 0; j < 4; j++) sum[j] += (uint128)c[r * terms + k] * tile[4 * k + j];
                if (k % 32 == 31)
                    for (int j = 0; j < 4; j++) sum[j] = folded(sum[j]);
            }
            for (int j = 0; j < width; j++) out[r * columns + i + j] = residue(sum[j]);
        }
    }
}

#define BESIDE 8 /* numbers side by side, for each product waits for the one before */

/* out = a^(2^59 - 1): exponents of ones, doubled in number or one longer. */
static void inverse_root_words(const uint64_t *a, uint64_t *out, Py_ssize_t count) {
    for (Py_ssize_t i = 0; i < count; i += BESIDE) {
        uint64_t base[BESIDE] = {0}, x[BESIDE], y[BESIDE];
        size_t bytes = 8 * (size_t)(count - i < BESIDE ? count - i : BESIDE);
        memcpy(base, a + i, bytes);
        memcpy(x, base, sizeof x);
        for (int step = 0; step < CHAIN_STEPS; step++) {
            memcpy(y, CHAIN[step] == 1 ? base : x, sizeof y);
            for (int k = 0; k < CHAIN[step]; k++)
                for (int v = 0; v < BESIDE; v++) x[v] = times(x[v], x[v]);
            for (int v = 0; v < BESIDE; v++) x[v] = times(x[v], y[v]);
        }
        memcpy(out + i, x, bytes);
    }
}

#undef BESIDE

static PyObject *fail(array *arrays, int count) {
    give_back(arrays, count);
    return NULL;
}

/* The arrays hold so many items; 0, or -1 with an exception. */
static int holds(const array *a, const char *name, Py_ssize_t count) {
    if (a->count == count) return 0;
    PyErr_Format(PyExc_ValueError, "%s must hold %zd words; got %zd", name, count, a->count);
    return -1;
}

/* Every product of the sizes is no more than an array can hold; 0, or -1 with an exception. */
static int fit(Py_ssize_t a, Py_ssize_t b, Py_ssize_t c) {
    const Py_ssize_t most = PY_SSIZE_T_MAX / 8;
    if (a >= 0 && b >= 0 && c >= 0) {
        Py_ssize_t x = a ? a : 1, y = b ? b : 1, z = c ? c : 1;
        if (x <= most / y && x * y <= most / z) return 0;
    }
    PyErr_SetString(PyExc_ValueError, "sizes must be at least 0, and fit memory");
    return -1;
}

static PyObject *dot(PyObject *self, PyObject *args) {
    PyObject *x, *y, *add, *out;
    Py_ssize_t terms, rows, columns, x_rows, y_rows;
    unsigned long long scale, offset;
    array a[4] = {0};
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOOnnnnnKK", &x, &y, &add, &out, &terms, &rows, &columns, &x_rows, &y_rows, &scale, &offset))
        return NULL;
    if ((x_rows != 1 && x_rows != rows) || (y_rows != 1 && y_rows != rows) || scale >= P || offset >= P)
        return PyErr_Format(PyExc_ValueError, "x and y must have 1 or %zd rows, and scale and offset be below p", rows);
    int added = add != Py_None;
    if (fit(terms, rows, columns) || take(&a[0], x, "x", 'Q', 0, 0) || take(&a[1], y, "y", 'Q', 0, 0) ||
        (added && take(&a[2], add, "add", 'Q', 0, 0)) || take(&a[3], out, "out", 'Q', 1, 0) ||
        holds(&a[0], "x", terms * x_rows * columns) || holds(&a[1], "y", terms * y_rows * columns) ||
        (added && holds(&a[2], "add", rows * columns)) || holds(&a[3], "out", rows * columns) || apart(&a[0], &a[3], "x and out") ||
        apart(&a[1], &a[3], "y and out") || (added && apart(&a[2], &a[3], "add and out")))
        return fail(a, 4);
    Py_BEGIN_ALLOW_THREADS
    WITH_PRODUCTS(dot)(a[0].view.buf, a[1].view.buf, added ? a[2].view.buf : NULL, a[3].view.buf, terms, rows, columns, x_rows, y_rows, scale,
                       offset);
    Py_END_ALLOW_THREADS
    give_back(a, 4);
    Py_RETURN_NONE;
}

static PyObject *matrix(PyObject *self, PyObject *args) {
    PyObject *c, *x, *out;
    Py_ssize_t rows, terms, columns;
    array a[3] = {0};
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOnnn", &c, &x, &out, &rows, &terms, &columns)) return NULL;
    if (fit(rows, terms, 1) || fit(terms, columns, 1) || fit(rows, columns, 1) || fit(terms, 16, 1) || take(&a[0], c, "c", 'Q', 0, 0) ||
        take(&a[1], x, "x", 'Q', 0, 0) || take(&a[2], out, "out", 'Q', 1, 0) || holds(&a[0], "c", rows * terms) ||
        holds(&a[1], "x", terms * columns) || holds(&a[2], "out", rows * columns) || apart(&a[0], &a[2], "c and out") ||
        apart(&a[1], &a[2], "x and out"))
        return fail(a, 3);
    words8 *halves = PyMem_Malloc(terms ? (size_t)terms * 2 * sizeof(words8) : 1);
    if (!halves) {
        PyErr_NoMemory();
        return fail(a, 3);
    }
    Py_BEGIN_ALLOW_THREADS
    WITH_PRODUCTS(matrix)(a[0].view.buf, a[1].view.buf, a[2].view.buf, rows, terms, columns, halves);
    Py_END_ALLOW_THREADS
    PyMem_Free(halves);
    give_back(a, 3);
    Py_RETURN_NONE;
}

/* The arrays of a tuple and one more for the output, apart from each other. */
typedef struct {
    array arrays[MOST_ROWS + 1];
    const uint64_t *rows[MOST_ROWS];
    uint64_t *out;
    Py_ssize_t count;
} row_set;

/* Takes rows of `columns` words and an output of `rows_out` such rows; 0, or -1 with an exception. */
static int take_rows(row_set *set, PyObject *rows, PyObject *out, Py_ssize_t rows_out, Py_ssize_t columns) {
    memset(set, 0, sizeof *set);
    set->count = PyTuple_Size(rows);
    if (set->count < 1 || set->count > MOST_ROWS || rows_out < 0 || rows_out > MOST_ROWS) {
        PyErr_Format(PyExc_ValueError, "rows must be 1 to %d; got %zd and %zd", MOST_ROWS, set->count, rows_out);
        return -1;
    }
    array *last = &set->arrays[MOST_ROWS];
    if (fit(MOST_ROWS, columns, 1) || take(last, out, "out", 'Q', 1, 0) || holds(last, "out", rows_out * columns)) goto refused;
    for (Py_ssize_t k = 0; k < set->count; k++) {
        PyObject *row = PyTuple_GetItem(rows, k);
        if (!row || take(&set->arrays[k], row, "a row", 'Q', 0, 0) || holds(&set->arrays[k], "a row", columns) ||
            apart(&set->arrays[k], last, "a row and out"))
            goto refused;
        set->rows[k] = set->arrays[k].view.buf;
    }
    set->out = last->view.buf;
    return 0;
refused:
    give_back(set->arrays, MOST_ROWS + 1);
    return -1;
}

static PyObject *total(PyObject *self, PyObject *args) {
    PyObject *x, *out;
    Py_ssize_t columns;
    row_set set;
    (void)self;
    if (!PyArg_ParseTuple(args, "O!On", &PyTuple_Type, &x, &out, &columns) || take_rows(&set, x, out, 1, columns)) return NULL;
    Py_BEGIN_ALLOW_THREADS
    CHOOSE(total)(set.rows, set.out, set.count, columns);
    Py_END_ALLOW_THREADS
    give_back(set.arrays, MOST_ROWS + 1);
    Py_RETURN_NONE;
}

static PyObject *extract(PyObject *self, PyObject *args) {
    PyObject *x, *out;
    Py_ssize_t rows_out, columns;
    row_set set;
    (void)self;
    if (!PyArg_ParseTuple(args, "O!Onn", &PyTuple_Type, &x, &out, &rows_out, &columns) || take_rows(&set, x, out, rows_out, columns))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    CHOOSE(extract)(set.rows, set.out, set.count, rows_out, columns);
    Py_END_ALLOW_THREADS
    give_back(set.arrays, MOST_ROWS + 1);
    Py_RETURN_NONE;
}

static PyObject *inverse_root(PyObject *self, PyObject *args) {
    PyObject *x, *out;
    array a[2] = {0};
    (void)self;
    if (!PyArg_ParseTuple(args, "OO", &x, &out)) return NULL;
    if (take(&a[0], x, "a", 'Q', 0, 0) || take(&a[1], out, "out", 'Q', 1, 0) || holds(&a[1], "out", a[0].count) ||
        apart(&a[0], &a[1], "a and out"))
        return fail(a, 2);
    Py_BEGIN_ALLOW_THREADS
    WITH_PRODUCTS(inverse_root)(a[0].view.buf, a[1].view.buf, a[0].count);
    Py_END_ALLOW_THREADS
    give_back(a, 2);
    Py_RETURN_NONE;
}

static PyObject *cut(PyObject *self, PyObject *args) {
    PyObject *x;
    array a[1] = {0};
    int found;
    (void)self;
    if (!PyArg_ParseTuple(args, "O", &x)) return NULL;
    if (take(&a[0], x, "x", 'Q', 1, 0)) return NULL;
    Py_BEGIN_ALLOW_THREADS
    found = CHOOSE(cut)(a[0].view.buf, a[0].count);
    Py_END_ALLOW_THREADS
    give_back(a, 1);
    return PyBool_FromLong(found);
}

static PyMethodDef METHODS[] = {
    {"dot", dot, METH_VARARGS, "dot(x, y, add, out, terms, rows, columns, x_rows, y_rows, scale, offset): out = scale sum x y + add + offset."},
    {"matrix", matrix, METH_VARARGS, "matrix(c, x, out, rows, terms, columns): out = c x."},
    {"total", total, METH_VARARGS, "total(rows, out, columns): out = the sum of the tuple of rows."},
    {"extract", extract, METH_VARARGS, "extract(rows, out, rows_out, columns): out[r] = sum of 2^(i r) rows[i]."},
    {"inverse_root", inverse_root, METH_VARARGS, "inverse_root(a, out): out = a^(2^59 - 1)."},
    {"cut", cut, METH_VARARGS, "cut(x): x mod 2^61, in place; whether any is p."},
    {NULL, NULL, 0, NULL},
};

int add_mersenne(PyObject *module) { return PyModule_AddFunctions(module, METHODS); }
