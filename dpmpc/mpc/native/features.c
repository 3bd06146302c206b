/* The processor's features: which there are, and which may be used. */

#include "kernels.h"

#if DPMPC_ARM && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

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
    if (found & HAS_AVX2 && __builtin_cpu_supports("vaes")) found |= HAS_VAES;
    if (found & HAS_AVX2 && __builtin_cpu_supports("vpclmulqdq")) found |= HAS_VPCLMUL;
#elif DPMPC_ARM && defined(__linux__)
    if (getauxval(AT_HWCAP) & HWCAP_AES) found |= HAS_AES;
    if (getauxval(AT_HWCAP) & HWCAP_PMULL) found |= HAS_PCLMUL;
#elif DPMPC_ARM && defined(__APPLE__)
    found |= HAS_AES | HAS_PCLMUL; /* every Mac with such a processor has both */
#endif
    return found;
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

int add_features(PyObject *module) {
    dpmpc_features = detected = detect();
    return PyModule_AddFunctions(module, METHODS);
}
