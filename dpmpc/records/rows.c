/* Values of records to places, what linear models need of places, and numbers to the cells of a survey: what `rows.py`, `design.py`
and `learning.survey` say, each in one pass. Their twins are NumPy, and give the same bits: every operation here is one that IEEE 754
rounds correctly, none is fused with another (the build says so), sums are made in a stated order, and each row is of one record
alone. It runs on the machine of the records' owner, who sees them anyway: how long it takes depends on values. */

#include "../buffers.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#ifdef __GNUC__
#define ALWAYS __attribute__((always_inline)) /* worked out for each constant that is handed over */
#else
#define ALWAYS
#endif

static inline double within(double value, double low, double high) {
    value = value < low ? low : value;
    return value > high ? high : value;
}

/* What is read of a column, and which place of a record it becomes; `rows.py` makes these. */
enum kind { CODES, SURVEYED, RANGE };
enum { READ = 10, SEEN = 4, LOW_CONSTANTS = 2, BLOCK = 64 /* rows whose places stay in a core's nearest cache */ };

typedef struct {
    int64_t kind, source, other; /* the number of its values, and of its buckets, -1 for none */
    int64_t to, bytes;           /* where a record has its place, -1 for nowhere; a code of 1 or 2 bytes, or the place of 4 or 8 */
    int64_t constants;           /* the first of its constants */
    int64_t rows, kept;          /* how many codes, or knots of its grid; how many kept buckets */
    int64_t missing;             /* the row of a missing value */
    int64_t seen;                /* the first of its counts */
} column;

/* The place of a number on a grid of G knots; `gaps` are the G - 1 between. */
static inline double placed(double value, const double *grid, const double *gaps, int64_t G) {
    double held = within(value, grid[0], grid[G - 1]);
    int64_t left = 0;
    for (int64_t k = 1; k < G - 1; k++) left += held >= grid[k];
    if (G == 1) return 0.0;
    double share = (held - grid[left]) / gaps[left];
    return (double)left + (share < 1.0 ? share : 1.0);
}

/* Puts a place where a record has it. */
static inline void put(uint8_t *out, int64_t bytes, double place) {
    const float narrow = (float)place;
    if (bytes == 8) memcpy(out, &place, sizeof place);
    else memcpy(out, &narrow, sizeof narrow);
}

/* Codes as an array has them: of 1, 2 or 4 bytes, with a sign or without. */
static inline int64_t code_at(const void *codes, char kind, Py_ssize_t i) {
    switch (kind) {
    case 'B': return ((const uint8_t *)codes)[i];
    case 'b': return ((const int8_t *)codes)[i];
    case 'H': return ((const uint16_t *)codes)[i];
    case 'h': return ((const int16_t *)codes)[i];
    default: return ((const int32_t *)codes)[i];
    }
}

/* Codes, of which each has a place; one below 0 is counted from the end. -1 for a code that has none. */
static inline int by_code(const column *c, const void *codes, char kind, const double *constants, uint8_t *out, Py_ssize_t stride,
                          int64_t *seen, Py_ssize_t begin, Py_ssize_t n) {
    for (Py_ssize_t i = 0; i < n; i++) {
        int64_t code = code_at(codes, kind, begin + i);
        code = code < 0 ? code + c->rows : code;
        if (code < 0 || code >= c->rows) return -1;
        seen[code]++;
        if (!out) continue;
        const uint16_t two = (uint16_t)code;
        if (c->bytes == 1) out[i * stride] = (uint8_t)code;
        else if (c->bytes == 2) memcpy(out + i * stride, &two, sizeof two);
        else put(out + i * stride, c->bytes, constants[code]);
    }
    return 0;
}

/* The same, worked out for each kind by itself. */
static int coded(const column *c, const void *codes, char kind, const double *constants, uint8_t *out, Py_ssize_t stride, int64_t *seen,
                 Py_ssize_t begin, Py_ssize_t n) {
    switch (kind) {
    case 'B': return by_code(c, codes, 'B', constants, out, stride, seen, begin, n);
    case 'b': return by_code(c, codes, 'b', constants, out, stride, seen, begin, n);
    case 'H': return by_code(c, codes, 'H', constants, out, stride, seen, begin, n);
    case 'h': return by_code(c, codes, 'h', constants, out, stride, seen, begin, n);
    default: return by_code(c, codes, 'i', constants, out, stride, seen, begin, n);
    }
}

/* A column as a survey has it (`design.surveyed`, `mapping.Counts.add_surveyed`). Constants: low, high; whether numbers have
features; grid, gaps; kept buckets. Rows after the grid are of the kept buckets, of a missing value where that has a feature, and
of nothing. Seen: missing, unknown, not read, clipped. */
static void surveyed(const column *c, const double *values, const double *buckets, const double *constants, uint8_t *out,
                     Py_ssize_t stride, int64_t *seen, Py_ssize_t n) {
    int64_t G = c->rows, kept = c->kept;
    const double low = constants[0], high = constants[1], last = constants[LOW_CONSTANTS + 1];
    const int number = constants[LOW_CONSTANTS] != 0;
    const double *grid = constants + LOW_CONSTANTS + 2, *gaps = grid + G, *named = gaps + (G ? G - 1 : 0);
    for (Py_ssize_t i = 0; i < n; i++) {
        double value = values[i], bucket = buckets ? buckets[i] : -1, place = last;
        int finite = isfinite(value) != 0, odd = isinf(value) != 0;
        int gone = isnan(value) || (odd && bucket < 0), text = odd && !gone, known = 0;
        if (finite && G) place = placed(value, grid, gaps, G);
        for (int64_t k = 0; k < kept; k++)
            if (odd && bucket == named[k]) place = (double)(G + k), known = 1;
        if (gone) place = (double)c->missing;
        if (out) put(out + i * stride, c->bytes, place);
        seen[0] += gone;
        seen[1] += kept && text && !known;
        seen[2] += !kept && number && text;
        seen[3] += number && !text && (value < low || value > high);
    }
}

/* A number of a stated range, but for logarithms. Constants: low, high; grid, gaps. */
static void ranged(const column *c, const double *values, const double *constants, uint8_t *out, Py_ssize_t stride, int64_t *seen,
                   Py_ssize_t n) {
    int64_t G = c->rows;
    const double low = constants[0], high = constants[1], *grid = constants + LOW_CONSTANTS, *gaps = grid + G;
    for (Py_ssize_t i = 0; i < n; i++) {
        double value = values[i];
        int finite = isfinite(value) != 0;
        seen[0] += isnan(value) != 0;
        seen[2] += isinf(value) != 0;
        seen[3] += finite && (value < low || value > high);
        if (out) put(out + i * stride, c->bytes, finite ? placed(value, grid, gaps, G) : (double)c->missing);
    }
}

/* Whether what a column says of itself lies in its arrays. */
static int fits(const column *c, int64_t sources, int64_t constants, int64_t counts, int64_t stride) {
    const int code = c->bytes == 1 || c->bytes == 2, place = c->bytes == 4 || c->bytes == 8;
    if (c->kind < CODES || c->kind > RANGE || c->source < 0 || c->source >= sources || c->other >= sources || c->other < -1 ||
        c->to < -1 || c->to > stride || (c->to >= 0 && (!(code || place) || c->to > stride - c->bytes)) || c->rows < 0 ||
        c->rows > 1 << 24 || c->kept < 0 || c->kept > 1 << 24 || c->constants < 0 || c->constants > constants || c->seen < 0 ||
        c->seen > counts || (c->kind == RANGE && !c->rows) ||
        (c->to >= 0 && code && (c->kind != CODES || c->rows > INT64_C(1) << 8 * c->bytes)))
        return 0;
    int64_t numbers = c->rows, seen = c->rows;
    if (c->kind != CODES) numbers = LOW_CONSTANTS + (c->rows ? 2 * c->rows - 1 : 0), seen = SEEN;
    if (c->kind == SURVEYED) numbers += 2 + c->kept;
    return c->constants + numbers <= constants && c->seen + seen <= counts;
}

/* All columns of some rows. -1 for a code that has no place. */
static int place_rows(const column *columns, Py_ssize_t many, const Py_buffer *sources, const double *constants, uint8_t *P,
                      Py_ssize_t stride, int64_t *seen, Py_ssize_t n) {
    int wrong = 0;
    for (Py_ssize_t begin = 0; begin < n; begin += BLOCK) {
        Py_ssize_t rows = n - begin < BLOCK ? n - begin : BLOCK;
        for (const column *c = columns; c < columns + many; c++) {
            const Py_buffer *from = sources + c->source;
            uint8_t *out = c->to < 0 ? NULL : P + begin * stride + c->to;
            const double *values = (const double *)from->buf + begin, *own = constants + c->constants;
            const double *buckets = c->other < 0 ? NULL : (const double *)sources[c->other].buf + begin;
            if (c->kind == CODES) wrong |= coded(c, from->buf, from->format[0], own, out, stride, seen + c->seen, begin, rows);
            else if (c->kind == SURVEYED) surveyed(c, values, buckets, own, out, stride, seen + c->seen, rows);
            else ranged(c, values, own, out, stride, seen + c->seen, rows);
        }
    }
    return wrong;
}

/* Takes codes: integers of 1, 2 or 4 bytes, with a sign but for the largest. */
static int taken_codes(Py_buffer *view, PyObject *object, Py_ssize_t n) {
    if (PyObject_GetBuffer(object, view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT)) return -1;
    const char *format = view->format;
    if (!format || !format[0] || format[1] || !strchr("BbHhi", format[0]))
        PyErr_SetString(PyExc_TypeError, "codes are whole numbers of 1, 2 or 4 bytes");
    else if ((uintptr_t)view->buf % (uintptr_t)view->itemsize || view->len / view->itemsize < n)
        PyErr_Format(PyExc_ValueError, "codes must be aligned, and at least %zd", n);
    else
        return 0;
    PyBuffer_Release(view);
    view->obj = NULL;
    return -1;
}

static PyObject *places(PyObject *self, PyObject *args) {
    PyObject *given, *told, *numbers, *room, *counts, *result = NULL;
    Py_ssize_t n, stride;
    (void)self;
    if (!PyArg_ParseTuple(args, "O!OOnnOO", &PyTuple_Type, &given, &told, &numbers, &n, &stride, &room, &counts)) return NULL;
    Py_ssize_t sources = PyTuple_Size(given);
    Py_buffer *views = PyMem_Calloc((size_t)sources + 4, sizeof *views), *own = views + sources;
    if (!views) return PyErr_NoMemory();
    if (n < 0 || stride < 0 || (stride && n > PY_SSIZE_T_MAX / stride)) {
        PyErr_SetString(PyExc_ValueError, "there are so many rows of places as an array has");
        goto end;
    }
    if (taken(own, told, 'q', 0, 0) || taken(own + 1, numbers, 'd', 0, 0) || taken(own + 2, room, 'B', 1, n * stride) ||
        taken(own + 3, counts, 'q', 1, 0))
        goto end;
    for (int k = 0; k < 4; k++) /* what was checked would change while it is used */
        if (overlap(own + 2 + k % 2, own + k / 2)) {
            PyErr_SetString(PyExc_ValueError, "what is written lies apart from what says where");
            goto end;
        }
    const column *columns = own[0].buf;
    Py_ssize_t many = own[0].len / (Py_ssize_t)sizeof *columns;
    char *kinds = PyMem_Calloc((size_t)sources + 1, 1);
    if (!kinds) {
        PyErr_NoMemory();
        goto end;
    }
    int good = 1;
    for (Py_ssize_t k = 0; good && k < many; k++) {
        good = fits(columns + k, sources, own[1].len / 8, own[3].len / 8, stride);
        if (good) kinds[columns[k].source] |= columns[k].kind == CODES ? 1 : 2;
        if (good && columns[k].other >= 0) kinds[columns[k].other] |= 2;
    }
    for (Py_ssize_t k = 0; good && k < sources; k++) good = kinds[k] != 3;
    if (!good) PyErr_SetString(PyExc_ValueError, "a column must lie in its arrays");
    for (Py_ssize_t k = 0; good && k < sources; k++)
        if (kinds[k] && (kinds[k] == 1 ? taken_codes(views + k, PyTuple_GetItem(given, k), n)
                                       : taken(views + k, PyTuple_GetItem(given, k), 'd', 0, n)))
            good = 0;
    PyMem_Free(kinds);
    if (!good) goto end;
    int wrong;
    Py_BEGIN_ALLOW_THREADS;
    wrong = place_rows(columns, many, views, own[1].buf, own[2].buf, stride, own[3].buf, n);
    Py_END_ALLOW_THREADS;
    if (wrong)
        PyErr_SetString(PyExc_ValueError, "a code must have a place");
    else
        result = Py_NewRef(Py_None);
end:
    released(views, sources + 4);
    PyMem_Free(views);
    return result;
}

/* What a place decides (`design.Cell`): `dense` rows of `width` features, and one of zeros, then a 0/1
feature each of `singles`, then nothing. */
typedef struct {
    int64_t at, dense, width, singles; /* the first of its features */
    int64_t slot, table;               /* the first of its rows among all; the first number of its dense rows */
} cell;

typedef struct {
    const cell *cells;
    const double *tables;
    int64_t many, d, slots, intercept;
} design;

/* What a record has of a cell, `bytes` of it from `at` on: a code of 1 or 2, of `many` from the code `first` on, or the place itself,
of 4 or 8. */
typedef struct {
    int64_t at, bytes, first, many;
} field;

/* Records as they are held: places, or, where there are fields, packed in so many bytes each. */
typedef struct {
    const void *held;
    int single;
    const field *fields;
    Py_ssize_t size;
    const double *places;  /* of each code of each field */
    const double *squares; /* and the squared length of its features */
} records;

enum { ABREAST = 4, RUN = 64, SPLIT = 1024 }; /* records worked on side by side; added up by themselves, as `design.RUN`; numbers split
                                                  at once, which stay in the nearest cache */

/* The codes that some records have of a field, 0 where one is none, and then `wrong`. */
ALWAYS static inline void codes_in(const records *r, const field *f, const uint8_t *from, Py_ssize_t n, int64_t *codes, int *wrong) {
    if (f->bytes == 1)
        for (Py_ssize_t i = 0; i < n; i++) codes[i] = from[i * r->size];
    else
        for (Py_ssize_t i = 0; i < n; i++) {
            uint16_t two;
            memcpy(&two, from + i * r->size, sizeof two);
            codes[i] = two;
        }
    for (Py_ssize_t i = 0; i < n; i++) {
        *wrong |= codes[i] >= f->many;
        codes[i] = codes[i] < f->many ? codes[i] : 0;
    }
}

/* A design that was handed over: 0, or -1 where a cell says of itself what is not so. */
static int design_of(design *g, const Py_buffer *told, const Py_buffer *tables, int64_t d, int intercept) {
    const cell *c = told->buf;
    g->cells = c, g->tables = tables->buf, g->many = told->len / (Py_ssize_t)sizeof *c, g->d = d, g->intercept = intercept != 0;
    int64_t numbers = tables->len / 8, slots = 0;
    if (d < g->intercept) return -1;
    for (int64_t k = 0; k < g->many; k++, c++) {
        if (c->at < 0 || c->dense < 0 || c->width < 0 || c->singles < 0 || c->table < 0 || c->at > d || c->dense > 1 << 24 ||
            c->width > d || c->singles > d || c->at + c->width + c->singles > d - g->intercept || c->slot != slots ||
            c->table > numbers || c->table + (c->dense + 1) * c->width > numbers)
            return -1;
        slots += c->dense + c->singles + 2;
    }
    g->slots = slots;
    return slots > INT32_MAX ? -1 : 0;
}

/* Of some numbers the row below each, counted among all cells' rows, and how far above it they are. */
typedef struct {
    double *last, *shares; /* the largest place of each number's cell */
    double *unpacked;      /* the places themselves, of packed records */
    int32_t *slot, *rows;  /* the first row of each number's cell */
    Py_ssize_t most;       /* how many records at once */
} halves;

static void halves_freed(halves *h) {
    free(h->last);
    free(h->slot);
}

static int halves_of(halves *h, const design *g) {
    h->most = g->many < SPLIT ? SPLIT / (g->many ? g->many : 1) : 1;
    size_t width = (size_t)g->many, numbers = width * (size_t)h->most;
    h->last = malloc((3 * numbers + 1) * sizeof *h->last), h->slot = malloc((2 * numbers + 1) * sizeof *h->slot);
    if (!h->last || !h->slot) {
        halves_freed(h);
        return -1;
    }
    h->shares = h->last + numbers, h->unpacked = h->shares + numbers, h->rows = h->slot + numbers;
    for (size_t j = 0; j < numbers; j++) {
        const cell *c = g->cells + j % width;
        h->last[j] = (double)(c->dense + c->singles);
        h->slot[j] = (int32_t)c->slot;
    }
    return 0;
}

/* Splits numbers j ... n - 1: those of `wide`, or of `narrow` where that is none. -1 where one is no place of its cell's. */
static int split_each(const halves *h, const double *wide, const float *narrow, Py_ssize_t j, Py_ssize_t n) {
    int wrong = 0;
    for (; j < n; j++) {
        double place = wide ? wide[j] : (double)narrow[j];
        const int good = place >= 0.0 && place <= h->last[j];
        place = good ? place : 0.0;
        const int32_t row = (int32_t)place;
        h->shares[j] = place - (double)row;
        h->rows[j] = row + h->slot[j];
        wrong |= !good;
    }
    return wrong ? -1 : 0;
}

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

/* The same, four at once; the last one by one. */
__attribute__((target("avx2"))) static int split_fours(const halves *h, const double *wide, const float *narrow, Py_ssize_t n) {
    __m256d all = _mm256_castsi256_pd(_mm256_set1_epi64x(-1));
    Py_ssize_t j = 0;
    for (; j + 4 <= n; j += 4) {
        __m256d place = wide ? _mm256_loadu_pd(wide + j) : _mm256_cvtps_pd(_mm_loadu_ps(narrow + j));
        const __m256d good = _mm256_and_pd(_mm256_cmp_pd(place, _mm256_setzero_pd(), _CMP_GE_OQ),
                                           _mm256_cmp_pd(place, _mm256_loadu_pd(h->last + j), _CMP_LE_OQ));
        all = _mm256_and_pd(all, good);
        place = _mm256_and_pd(place, good);
        const __m128i row = _mm256_cvttpd_epi32(place);
        _mm256_storeu_pd(h->shares + j, _mm256_sub_pd(place, _mm256_cvtepi32_pd(row)));
        _mm_storeu_si128((__m128i *)(h->rows + j), _mm_add_epi32(row, _mm_loadu_si128((const __m128i *)(h->slot + j))));
    }
    const int rest = split_each(h, wide, narrow, j, n);
    return _mm256_movemask_pd(all) == 15 ? rest : -1;
}
#endif

/* The places of packed records begin ... begin + n - 1, cell after cell; -1 for a code that has none. */
static int unpacked(const halves *h, const design *g, const records *r, Py_ssize_t begin, Py_ssize_t n) {
    int wrong = 0;
    for (int64_t k = 0; k < g->many; k++) {
        const field *f = r->fields + k;
        const uint8_t *from = (const uint8_t *)r->held + begin * r->size + f->at;
        const double *places = r->places + f->first;
        double *to = h->unpacked + k;
        float narrow;
        uint16_t two;
        if (f->bytes == 1)
            for (Py_ssize_t i = 0; i < n; i++, from += r->size, to += g->many) {
                wrong |= *from >= f->many;
                *to = places[*from < f->many ? *from : 0];
            }
        else if (f->bytes == 2)
            for (Py_ssize_t i = 0; i < n; i++, from += r->size, to += g->many) {
                memcpy(&two, from, sizeof two);
                wrong |= two >= f->many;
                *to = places[two < f->many ? two : 0];
            }
        else if (f->bytes == 4)
            for (Py_ssize_t i = 0; i < n; i++, from += r->size, to += g->many) {
                memcpy(&narrow, from, sizeof narrow);
                *to = (double)narrow;
            }
        else
            for (Py_ssize_t i = 0; i < n; i++, from += r->size, to += g->many) memcpy(to, from, sizeof *to);
    }
    return wrong ? -1 : 0;
}

/* Splits the places of rows begin ... begin + n - 1, at most `most`. */
static int halved(const halves *h, const design *g, const records *r, Py_ssize_t begin, Py_ssize_t n) {
    const Py_ssize_t at = begin * (Py_ssize_t)g->many, numbers = n * (Py_ssize_t)g->many;
    const double *wide = r->fields ? h->unpacked : r->single ? NULL : (const double *)r->held + at;
    const float *narrow = wide ? NULL : (const float *)r->held + at;
    const int wrong = r->fields ? unpacked(h, g, r, begin, n) : 0;
#if defined(__x86_64__) && defined(__GNUC__)
    if (__builtin_cpu_supports("avx2")) return split_fours(h, wide, narrow, numbers) | wrong;
#endif
    return split_each(h, wide, narrow, 0, numbers) | wrong;
}

/* One number a packed record: the sum of what its codes have in `table`, after `first`. */
ALWAYS static inline int added_abreast(const design *g, const records *r, const double *table, const uint8_t *record, double first,
                                       Py_ssize_t some, double *total) {
    int wrong = 0;
    for (Py_ssize_t q = 0; q < some; q++) total[q] = first;
    for (const field *f = r->fields; f < r->fields + g->many; f++) {
        int64_t codes[ABREAST];
        codes_in(r, f, record + f->at, some, codes, &wrong);
        for (Py_ssize_t q = 0; q < some; q++) total[q] += table[f->first + codes[q]];
    }
    return wrong;
}

static int added_up(const design *g, const records *r, const double *table, double first, const double *factors, Py_ssize_t n, double *out) {
    const uint8_t *record = r->held;
    double total[ABREAST];
    int wrong = 0;
    Py_ssize_t i = 0;
    for (; i + ABREAST <= n; i += ABREAST, record += ABREAST * r->size) {
        wrong |= added_abreast(g, r, table, record, first, ABREAST, total);
        for (int q = 0; q < ABREAST; q++) out[i + q] = factors ? total[q] * factors[i + q] : total[q];
    }
    wrong |= added_abreast(g, r, table, record, first, n - i, total);
    for (Py_ssize_t q = 0; i < n; i++, q++) out[i] = factors ? total[q] * factors[i] : total[q];
    return wrong ? -1 : 0;
}

/* Each row's squared norm before it is divided: cell after cell, of each the squares of its features one after the other. */
static int squares_of(const design *g, const halves *h, const records *r, Py_ssize_t n, double *out) {
    int wrong = 0;
    if (r->squares) return added_up(g, r, r->squares, g->intercept ? 1.0 : 0.0, NULL, n, out);
    for (Py_ssize_t begin = 0; begin < n; begin += h->most) {
        const Py_ssize_t end = begin + h->most < n ? begin + h->most : n;
        const double *shares = h->shares;
        const int32_t *rows = h->rows;
        wrong |= halved(h, g, r, begin, end - begin);
        for (Py_ssize_t i = begin; i < end; i++, shares += g->many, rows += g->many) {
            double total = g->intercept ? 1.0 : 0.0;
            for (int64_t k = 0; k < g->many; k++) {
                const cell *c = g->cells + k;
                const int64_t row = rows[k] - c->slot;
                double part = 0.0;
                if (row < c->dense) {
                    const double share = shares[k], rest = 1.0 - share;
                    const double *before = g->tables + c->table + row * c->width, *after = before + c->width;
                    for (int64_t q = 0; q < c->width; q++) {
                        double value = before[q] * rest + after[q] * share;
                        part += value * value;
                    }
                } else if (row < c->dense + c->singles)
                    part = 1.0;
                total += part;
            }
            out[i] = total;
        }
    }
    return wrong;
}

/* The rows themselves, each times its factor. */
static int written(const design *g, const halves *h, const records *r, const double *factors, Py_ssize_t n, double *out) {
    int wrong = 0;
    for (Py_ssize_t begin = 0; begin < n; begin += h->most) {
        const Py_ssize_t end = begin + h->most < n ? begin + h->most : n;
        const double *shares = h->shares;
        const int32_t *rows = h->rows;
        wrong |= halved(h, g, r, begin, end - begin);
        for (Py_ssize_t i = begin; i < end; i++, out += g->d, shares += g->many, rows += g->many) {
            for (int64_t q = 0; q < g->d; q++) out[q] = 0.0;
            for (int64_t k = 0; k < g->many; k++) {
                const cell *c = g->cells + k;
                const int64_t row = rows[k] - c->slot;
                double *to = out + c->at;
                if (row < c->dense) {
                    const double share = shares[k], rest = 1.0 - share;
                    const double *before = g->tables + c->table + row * c->width, *after = before + c->width;
                    for (int64_t q = 0; q < c->width; q++) to[q] = (before[q] * rest + after[q] * share) * factors[i];
                } else if (row < c->dense + c->singles)
                    to[c->width + row - c->dense] = factors[i];
            }
            if (g->intercept) out[g->d - 1] = factors[i];
        }
    }
    return wrong;
}

/* What each row of each cell adds to K scores: the features of its row times theta (d, K), one after the other. After
the K of a row, how much more the next one adds. */
static void looked_up(const design *g, const double *theta, int64_t K, double *slots) {
    for (int64_t k = 0; k < g->many; k++) {
        const cell *c = g->cells + k;
        const int64_t rows = c->dense + c->singles + 2;
        double *to = slots + c->slot * 2 * K;
        memset(to, 0, (size_t)(rows * 2 * K) * sizeof *to);
        for (int64_t row = 0; row < c->dense; row++)
            for (int64_t q = 0; q < c->width; q++)
                for (int64_t o = 0; o < K; o++)
                    to[row * 2 * K + o] += g->tables[c->table + row * c->width + q] * theta[(c->at + q) * K + o];
        for (int64_t row = 0; row < c->singles; row++)
            memcpy(to + (c->dense + row) * 2 * K, theta + (c->at + c->width + row) * K, (size_t)K * sizeof *to);
        for (int64_t row = 0; row + 1 < rows; row++)
            for (int64_t o = 0; o < K; o++) to[row * 2 * K + K + o] = to[(row + 1) * 2 * K + o] - to[row * 2 * K + o];
    }
}

static int scores_of(const design *g, const halves *h, const records *r, const double *factors, const double *theta, int64_t K,
                     const double *slots, const double *of_codes, Py_ssize_t n, double *out) {
    const double *constant = g->intercept ? theta + (g->d - 1) * K : NULL;
    const int64_t many = g->many;
    int wrong = 0;
    if (of_codes && K == 1) return added_up(g, r, of_codes, constant ? constant[0] : 0.0, factors, n, out);
    for (Py_ssize_t begin = 0; begin < n; begin += h->most) {
        const Py_ssize_t end = begin + h->most < n ? begin + h->most : n;
        const double *shares = h->shares;
        const int32_t *rows = h->rows;
        Py_ssize_t i = begin;
        wrong |= halved(h, g, r, begin, end - begin);
        if (K == 1) /* the same, some rows at once: additions of one wait for each other */
            for (; i + ABREAST <= end; i += ABREAST, out += ABREAST, shares += ABREAST * many, rows += ABREAST * many) {
                double total[ABREAST];
                for (int r = 0; r < ABREAST; r++) total[r] = constant ? constant[0] : 0.0;
                for (int64_t k = 0; k < many; k++)
                    for (int r = 0; r < ABREAST; r++) {
                        const double *at = slots + 2 * (int64_t)rows[r * many + k];
                        total[r] += at[0] + at[1] * shares[r * many + k];
                    }
                for (int r = 0; r < ABREAST; r++) out[r] = total[r] * factors[i + r];
            }
        for (; i < end; i++, out += K, shares += many, rows += many) {
            for (int64_t o = 0; o < K; o++) out[o] = constant ? constant[o] : 0.0;
            for (int64_t k = 0; k < many; k++) {
                const double *at = slots + 2 * K * (int64_t)rows[k];
                for (int64_t o = 0; o < K; o++) out[o] += at[o] + at[K + o] * shares[k];
            }
            for (int64_t o = 0; o < K; o++) out[o] *= factors[i];
        }
    }
    return wrong;
}

typedef double pair __attribute__((vector_size(16), aligned(8)));

/* Rows begin ... end - 1, at most RUN, each with its K coefficients, into two sums a slot: of what goes to the row below a
place, and above. */
static int sums_of(const design *g, const halves *h, const records *r, const double *factors, const double *coefficients, int64_t K,
                   Py_ssize_t begin, Py_ssize_t end, double *slots, double *constant) {
    const int64_t many = g->many;
    int wrong = 0;
    for (; begin < end; begin += h->most) {
        const Py_ssize_t stop = begin + h->most < end ? begin + h->most : end;
        const double *shares = h->shares;
        const int32_t *rows = h->rows;
        wrong |= halved(h, g, r, begin, stop - begin);
        for (Py_ssize_t i = begin; i < stop; i++, shares += many, rows += many) {
            const double *mine = coefficients + i * K, factor = factors[i];
            if (K == 1) {
                const double pull = mine[0] * factor;
                const pair both = {pull, pull};
                constant[0] += pull;
                for (int64_t k = 0; k < many; k++) {
                    pair *at = (pair *)(slots + 2 * (int64_t)rows[k]);
                    const pair parts = {1.0 - shares[k], shares[k]};
                    *at += both * parts;
                }
                continue;
            }
            for (int64_t o = 0; o < K; o++) constant[o] += mine[o] * factor;
            for (int64_t k = 0; k < many; k++) {
                double share = shares[k], rest = 1.0 - share, *at = slots + 2 * K * (int64_t)rows[k];
                for (int64_t o = 0; o < K; o++) {
                    double pull = mine[o] * factor;
                    at[2 * o] += pull * rest;
                    at[2 * o + 1] += pull * share;
                }
            }
        }
    }
    return wrong;
}

/* The sums by features (d, K) of those by slots: each dense row times its sum, one after the other. */
static void by_feature(const design *g, const double *slots, const double *constant, int64_t K, double *out) {
    memset(out, 0, (size_t)(g->d * K) * sizeof *out);
    for (int64_t k = 0; k < g->many; k++) {
        const cell *c = g->cells + k;
        const double *at = slots + 2 * c->slot * K;
        for (int64_t row = 0; row < c->dense + c->singles; row++)
            for (int64_t o = 0; o < K; o++) {
                double sum = at[2 * (row * K + o)] + (row ? at[2 * ((row - 1) * K + o) + 1] : 0.0);
                if (row >= c->dense) {
                    out[(c->at + c->width + row - c->dense) * K + o] = sum;
                    continue;
                }
                const double *table = g->tables + c->table + row * c->width;
                for (int64_t q = 0; q < c->width; q++) out[(c->at + q) * K + o] += table[q] * sum;
            }
    }
    if (g->intercept)
        for (int64_t o = 0; o < K; o++) out[(g->d - 1) * K + o] = constant[o];
}

/* What all that is made of places is handed first: cells, tables, d, whether there is an intercept, places, whether in 32 bits, n, and
of packed records their fields, the places and the squares of all codes, and how many bytes each has; no squares where not all
cells have codes. */
enum { LEADING = 8, PACKED = 7 /* views before those of packed records */, VIEWS = 10 };
typedef struct {
    Py_buffer views[VIEWS];
    design g;
    records r;
    Py_ssize_t n;
} asked;

/* Whether fields lie in a record, and codes in their tables. */
static int packed_well(const records *r, const design *g, Py_ssize_t fields, Py_ssize_t codes) {
    if (r->size < 0 || fields != g->many) return 0;
    for (const field *f = r->fields; f < r->fields + fields; f++) {
        const int code = f->bytes == 1 || f->bytes == 2;
        if ((!code && ((f->bytes != 4 && f->bytes != 8) || r->squares)) || f->at < 0 || f->at > r->size - f->bytes || f->first < 0 || f->many < code ||
            f->many > INT64_C(1) << 16 || f->first > codes - f->many)
            return 0;
    }
    return 1;
}

static int asked_of(asked *a, PyObject *args) {
    PyObject *told, *tables, *held, *packed, *parts[3];
    Py_ssize_t d;
    int intercept;
    memset(a, 0, sizeof *a);
    if (PyTuple_Size(args) < LEADING) {
        PyErr_SetString(PyExc_TypeError, "a design and places are due");
        return -1;
    }
    PyObject *first = PyTuple_GetSlice(args, 0, LEADING);
    if (!first) return -1;
    int parsed = PyArg_ParseTuple(first, "OOnpOpnO", &told, &tables, &d, &intercept, &held, &a->r.single, &a->n, &packed);
    Py_DECREF(first); /* `args` holds what was in it */
    if (!parsed) return -1;
    if (d < 0 || a->n < 0 || d > 1 << 30 || taken(a->views, told, 'q', 0, 0) || taken(a->views + 1, tables, 'd', 0, 0) ||
        design_of(&a->g, a->views, a->views + 1, d, intercept)) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "a cell must lie in its design");
        return -1;
    }
    if ((a->g.many && a->n > PY_SSIZE_T_MAX / 8 / a->g.many) || (d && a->n > PY_SSIZE_T_MAX / 8 / d)) {
        PyErr_SetString(PyExc_ValueError, "there are so many rows of places as an array has");
        return -1;
    }
    Py_buffer *own = a->views + PACKED;
    if (packed == Py_None) {
        if (taken(a->views + 2, held, a->r.single ? 'f' : 'd', 0, a->n * (Py_ssize_t)a->g.many)) return -1;
    } else {
        if (!PyArg_ParseTuple(packed, "OOOn", parts, parts + 1, parts + 2, &a->r.size) || taken(own, parts[0], 'q', 0, 0) ||
            taken(own + 1, parts[1], 'd', 0, 0) ||
            (parts[2] != Py_None && taken(own + 2, parts[2], 'd', 0, own[1].len / 8)))
            return -1;
        a->r.fields = own[0].buf, a->r.places = own[1].buf, a->r.squares = own[2].buf;
        if (!packed_well(&a->r, &a->g, own[0].len / (Py_ssize_t)sizeof(field), own[1].len / 8) ||
            (a->r.size && a->n > PY_SSIZE_T_MAX / a->r.size)) {
            PyErr_SetString(PyExc_ValueError, "a field must lie in its record");
            return -1;
        }
        if (taken(a->views + 2, held, 'B', 0, a->n * a->r.size)) return -1;
    }
    a->r.held = a->views[2].buf;
    return 0;
}

static PyObject *ended(asked *a, int wrong) {
    if (wrong && !PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "a place must be one of its cell's");
    released(a->views, VIEWS);
    return wrong || PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

static PyObject *squares(PyObject *self, PyObject *args) {
    asked a;
    halves h;
    int wrong = -1;
    (void)self;
    if (asked_of(&a, args) || PyTuple_Size(args) != LEADING + 1 || taken(a.views + 3, PyTuple_GetItem(args, LEADING), 'd', 1, a.n))
        goto end;
    if (halves_of(&h, &a.g)) {
        PyErr_NoMemory();
        goto end;
    }
    Py_BEGIN_ALLOW_THREADS;
    wrong = squares_of(&a.g, &h, &a.r, a.n, a.views[3].buf);
    Py_END_ALLOW_THREADS;
    halves_freed(&h);
end:
    return ended(&a, wrong);
}

static PyObject *rows(PyObject *self, PyObject *args) {
    asked a;
    halves h;
    int wrong = -1;
    (void)self;
    if (asked_of(&a, args) || PyTuple_Size(args) != LEADING + 2 || taken(a.views + 3, PyTuple_GetItem(args, LEADING), 'd', 0, a.n) ||
        taken(a.views + 4, PyTuple_GetItem(args, LEADING + 1), 'd', 1, a.n * (Py_ssize_t)a.g.d))
        goto end;
    if (halves_of(&h, &a.g)) {
        PyErr_NoMemory();
        goto end;
    }
    Py_BEGIN_ALLOW_THREADS;
    wrong = written(&a.g, &h, &a.r, a.views[3].buf, a.n, a.views[4].buf);
    Py_END_ALLOW_THREADS;
    halves_freed(&h);
end:
    return ended(&a, wrong);
}

/* K of an argument; 0 where it is none. */
static int64_t scores_each(PyObject *number, const asked *a) {
    Py_ssize_t K = PyLong_AsSsize_t(number);
    if (PyErr_Occurred()) return 0;
    if (K < 1 || K > 1 << 24 || a->n > PY_SSIZE_T_MAX / 8 / K || a->g.d > PY_SSIZE_T_MAX / 8 / K || a->g.slots > PY_SSIZE_T_MAX / 64 / K) {
        PyErr_SetString(PyExc_ValueError, "a record has one score at least");
        return 0;
    }
    return K;
}

static PyObject *scores(PyObject *self, PyObject *args) {
    asked a;
    int wrong = -1;
    double *slots = NULL;
    halves h;
    (void)self;
    if (asked_of(&a, args) || PyTuple_Size(args) != LEADING + 5) goto end;
    int64_t K = scores_each(PyTuple_GetItem(args, LEADING), &a);
    if (!K || taken(a.views + 3, PyTuple_GetItem(args, LEADING + 1), 'd', 0, a.n) ||
        taken(a.views + 4, PyTuple_GetItem(args, LEADING + 2), 'd', 0, (Py_ssize_t)(a.g.d * K)) ||
        taken(a.views + 5, PyTuple_GetItem(args, LEADING + 3), 'd', 1, a.n * (Py_ssize_t)K))
        goto end;
    PyObject *of_codes = PyTuple_GetItem(args, LEADING + 4);
    if (of_codes != Py_None && (!a.r.squares || taken(a.views + 6, of_codes, 'd', 0, a.views[PACKED + 1].len / 8))) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "codes have scores where all cells have codes");
        goto end;
    }
    slots = malloc((size_t)(a.g.slots * 2 * K + 1) * sizeof *slots);
    if (!slots || halves_of(&h, &a.g)) {
        PyErr_NoMemory();
        goto end;
    }
    Py_BEGIN_ALLOW_THREADS;
    looked_up(&a.g, a.views[4].buf, K, slots);
    wrong = scores_of(&a.g, &h, &a.r, a.views[3].buf, a.views[4].buf, K, slots, a.views[6].buf, a.n, a.views[5].buf);
    Py_END_ALLOW_THREADS;
    halves_freed(&h);
end:
    free(slots);
    return ended(&a, wrong);
}

static PyObject *sums(PyObject *self, PyObject *args) {
    asked a;
    int wrong = -1;
    double *slots = NULL;
    halves h;
    (void)self;
    if (asked_of(&a, args) || PyTuple_Size(args) != LEADING + 5) goto end;
    int64_t K = scores_each(PyTuple_GetItem(args, LEADING), &a);
    if (!K || taken(a.views + 3, PyTuple_GetItem(args, LEADING + 1), 'd', 0, a.n) ||
        taken(a.views + 4, PyTuple_GetItem(args, LEADING + 2), 'd', 0, a.n * (Py_ssize_t)K) ||
        taken(a.views + 5, PyTuple_GetItem(args, LEADING + 3), 'q', 0, 1))
        goto end;
    const int64_t *cuts = a.views[5].buf;
    Py_ssize_t groups = a.views[5].len / 8 - 1;
    int good = cuts[0] >= 0 && cuts[groups] <= a.n && groups <= PY_SSIZE_T_MAX / 8 / (K * (a.g.d ? a.g.d : 1));
    for (Py_ssize_t k = 0; good && k < groups; k++) good = cuts[k] <= cuts[k + 1];
    if (!good) {
        PyErr_SetString(PyExc_ValueError, "groups of rows lie one after the other");
        goto end;
    }
    if (taken(a.views + 6, PyTuple_GetItem(args, LEADING + 4), 'd', 1, groups * (Py_ssize_t)(a.g.d * K))) goto end;
    size_t numbers = (size_t)((2 * a.g.slots + 1) * K);
    slots = malloc(2 * numbers * sizeof *slots);
    if (!slots || halves_of(&h, &a.g)) {
        PyErr_NoMemory();
        goto end;
    }
    Py_BEGIN_ALLOW_THREADS;
    wrong = 0;
    for (Py_ssize_t k = 0; !wrong && k < groups; k++) {
        double *constant = slots + 2 * a.g.slots * K, *part = slots + numbers;
        memset(slots, 0, numbers * sizeof *slots);
        for (Py_ssize_t at = cuts[k]; !wrong && at < cuts[k + 1]; at += RUN) {
            memset(part, 0, numbers * sizeof *part);
            wrong = sums_of(&a.g, &h, &a.r, a.views[3].buf, a.views[4].buf, K, at,
                            at + RUN < cuts[k + 1] ? at + RUN : cuts[k + 1], part, part + 2 * a.g.slots * K);
            for (size_t q = 0; q < numbers; q++) slots[q] += part[q];
        }
        if (!wrong) by_feature(&a.g, slots, constant, K, (double *)a.views[6].buf + k * a.g.d * K);
    }
    Py_END_ALLOW_THREADS;
    halves_freed(&h);
end:
    free(slots);
    return ended(&a, wrong);
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
                if (places[i] < (double)buckets) row[NUMBER + (int64_t)places[i]] += 1.0;
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

/* The same of codes, each value's cell and moments known. */
ALWAYS static inline int coded_into_cells(const void *codes, char kind, const int32_t *cells, const double *moments, int64_t many, const int64_t *group,
                            Py_ssize_t n, double *out, int64_t stride) {
    for (Py_ssize_t i = 0; i < n; i++) {
        int64_t code = code_at(codes, kind, i);
        if (code < 0 || code >= many) return -1;
        if (group[i] < 0) continue;
        double *row = out + group[i] * stride;
        int32_t at = cells[code];
        row[at] += 1.0;
        if (at < 2) continue;
        row[CELLS - 2 + at] += moments[2 * code];
        row[CELLS - 2 + 2 * OCTAVES + at] += moments[2 * code + 1];
    }
    return 0;
}

static PyObject *coded_cells(PyObject *self, PyObject *args) {
    PyObject *objects[5], *result = NULL;
    Py_buffer a[5] = {{0}};
    long long at, stride, groups;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOOOLLL", objects, objects + 1, objects + 2, objects + 3, objects + 4, &at, &stride, &groups))
        return NULL;
    if (at < 0 || groups < 0 || groups > 1 << 30 || stride < 0 || stride > 1 << 30 || at > stride - NUMBER)
        return PyErr_Format(PyExc_ValueError, "a column's cells must lie in a row");
    if (taken(a + 1, objects[1], 'i', 0, 0) || taken(a + 2, objects[2], 'd', 0, a[1].len / 4 * 2) || taken(a + 3, objects[3], 'q', 0, 0) ||
        taken_codes(a, objects[0], a[3].len / 8) || taken(a + 4, objects[4], 'd', 1, (Py_ssize_t)(groups * stride)))
        goto end;
    const int32_t *cells = a[1].buf;
    const int64_t *group = a[3].buf;
    Py_ssize_t n = a[3].len / 8, many = a[1].len / 4;
    int wrong = 0;
    for (Py_ssize_t k = 0; k < many; k++) wrong |= cells[k] < 0 || cells[k] >= CELLS;
    for (Py_ssize_t i = 0; i < n; i++) wrong |= group[i] >= groups;
    if (wrong) {
        PyErr_SetString(PyExc_ValueError, "a group must have a row, and a code a cell");
        goto end;
    }
    double *out = (double *)a[4].buf + at;
    Py_BEGIN_ALLOW_THREADS;
    switch (a[0].format[0]) {
    case 'B': wrong = coded_into_cells(a[0].buf, 'B', cells, a[2].buf, many, group, n, out, stride); break;
    case 'H': wrong = coded_into_cells(a[0].buf, 'H', cells, a[2].buf, many, group, n, out, stride); break;
    default: wrong = coded_into_cells(a[0].buf, a[0].format[0], cells, a[2].buf, many, group, n, out, stride);
    }
    Py_END_ALLOW_THREADS;
    if (wrong) PyErr_SetString(PyExc_ValueError, "a code must have a cell");
    else result = Py_NewRef(Py_None);
end:
    released(a, 5);
    return result;
}

static PyMethodDef METHODS[] = {
    {"places", places, METH_VARARGS,
     "places(sources, columns, constants, n, size, P, seen): the columns' places of n rows of so many bytes, into P; seen counts what they hold."},
    {"squares", squares, METH_VARARGS, "squares(*design, places, single, n, packed, out): the rows' squared norms before they are divided."},
    {"rows", rows, METH_VARARGS, "rows(*design, places, single, n, packed, factors, X): the rows, each times its factor."},
    {"scores", scores, METH_VARARGS, "scores(*design, places, single, n, packed, K, factors, theta, out): the rows' K scores."},
    {"sums", sums, METH_VARARGS,
     "sums(*design, places, single, n, packed, K, factors, coefficients, cuts, out): sums of the rows between cuts, each K times."},
    {"cells", cells, METH_VARARGS,
     "cells(values, places, group, n, low, high, buckets, out, at, stride, groups): adds values to their groups' rows, from at on."},
    {"coded_cells", coded_cells, METH_VARARGS,
     "coded_cells(codes, cells, moments, group, out, at, stride, groups): the same of codes, whose cells and moments are given."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, "_rows", "Compiled rows.", -1, METHODS, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__rows(void) { return PyModule_Create(&MODULE); }
