/* The extension module: the processor's features, checked buffers, the list of kernels. */

#include "kernels.h"

unsigned dpmpc_features = 0;
static unsigned detected = 0;

static const struct {
    const char *name;
    unsigned flag;
} FEATURES[] = {
    {"avx2", HAS_AVX2},     {"avx512", HAS_AVX512}, {"aes", HAS_AES},
    {"vaes", HAS_VAES},     {"pclmul", HAS_PCLMUL}, {"vpclmul", HAS_VPCLMUL},
};
#define FEATURE_COUNT (int)(sizeof FEATURES / sizeof *FEATURES)

static unsigned detect(void) {
    unsigned found = 0;
#if DPMPC_X86
    __builtin_cpu_init(); /* what it reports is what the processor has and the system saves */
    if (__builtin_cpu_supports("avx2")) found |= HAS_AVX2;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        found |= HAS_AVX512;
    if (__builtin_cpu_supports("aes")) found |= HAS_AES;
    if (__builtin_cpu_supports("pclmul")) found |= HAS_PCLMUL;
    if (found & HAS_AVX512 && __builtin_cpu_supports("vaes")) found |= HAS_VAES;
    if (found & HAS_AVX512 && __builtin_cpu_supports("vpclmulqdq")) found |= HAS_VPCLMUL;
#endif
    return found;
}

int take(array *a, PyObject *object, const char *name, char kind, int writable, Py_ssize_t least) {
    int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(object, &a->view, flags)) return -1;
    const char *format = a->view.format ? a->view.format : "B";
    char found = format[0] && !format[1] ? format[0] : '?';
    Py_ssize_t size = kind == 'Q' ? 8 : kind == 'i' ? 4 : 1;
    /* a 64-bit word is 'L' or 'Q', an int32 'i' or 'l', by platform */
    int fits = a->view.itemsize == size && (kind == 'Q'   ? found == 'Q' || found == 'L'
                                            : kind == 'i' ? found == 'i' || found == 'l'
                                                          : found == 'B');
    if (!fits) {
        PyErr_Format(PyExc_TypeError, "%s must hold items of kind %c; got %s", name, kind, format);
    } else if ((uintptr_t)a->view.buf % (uintptr_t)size) {
        PyErr_Format(PyExc_ValueError, "%s must be aligned to %zd bytes", name, size);
        fits = 0;
    } else if (a->view.len / size < least) {
        PyErr_Format(PyExc_ValueError, "%s must hold at least %zd items; got %zd", name, least, a->view.len / size);
        fits = 0;
    }
    if (!fits) {
        PyBuffer_Release(&a->view);
        a->view.obj = NULL;
        return -1;
    }
    a->count = a->view.len / size;
    return 0;
}

int apart(const array *a, const array *b, const char *names) {
    const char *x = a->view.buf, *y = b->view.buf;
    if (x + a->view.len <= y || y + b->view.len <= x) return 0;
    PyErr_Format(PyExc_ValueError, "%s must not share memory", names);
    return -1;
}

void give_back(array *arrays, int count) {
    for (int k = 0; k < count; k++)
        if (arrays[k].view.obj) PyBuffer_Release(&arrays[k].view);
}

static PyObject *named(unsigned flags) {
    PyObject *names = PyList_New(0);
    for (int k = 0; names && k < FEATURE_COUNT; k++)
        if (flags & FEATURES[k].flag) {
            PyObject *name = PyUnicode_FromString(FEATURES[k].name);
            if (!name || PyList_Append(names, name)) Py_CLEAR(names);
            Py_XDECREF(name);
        }
    return names;
}

static PyObject *features(PyObject *self, PyObject *none) {
    (void)self, (void)none;
    return named(dpmpc_features);
}

static PyObject *restrict_to(PyObject *self, PyObject *args) {
    PyObject *names;
    (void)self;
    if (!PyArg_ParseTuple(args, "O!", &PyTuple_Type, &names)) return NULL;
    unsigned kept = 0;
    for (Py_ssize_t i = 0; i < PyTuple_Size(names); i++) {
        PyObject *name = PyTuple_GetItem(names, i);
        int known = 0;
        for (int k = 0; name && PyUnicode_Check(name) && k < FEATURE_COUNT; k++)
            if (PyUnicode_CompareWithASCIIString(name, FEATURES[k].name) == 0) {
                kept |= FEATURES[k].flag;
                known = 1;
            }
        if (!known) return PyErr_Format(PyExc_ValueError, "no processor feature is called %R", name);
    }
    dpmpc_features = detected & kept;
    return named(dpmpc_features);
}

static PyMethodDef METHODS[] = {
    {"features", features, METH_NOARGS, "Names of the processor features in use."},
    {"restrict_to", restrict_to, METH_VARARGS, "Use of the processor's features those named only; what is in use then."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, "_kernels", "Compiled kernels.", -1, METHODS, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__kernels(void) {
    dpmpc_features = detected = detect();
    PyObject *module = PyModule_Create(&MODULE);
    if (module && (add_planes(module) || add_aes(module) || add_program(module) || add_field(module) ||
                   add_mersenne(module) || add_ot(module) || add_gf64(module) || add_crew(module)))
        Py_CLEAR(module);
    return module;
}
