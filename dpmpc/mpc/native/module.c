/* The extension module: the list of what adds kernels to it, and the number that choice.py compares. */

#include "kernels.h"

int add_blank(PyObject *module);
int add_hashes(PyObject *module);
int add_lifts(PyObject *module);
int add_points(PyObject *module);
int add_shares(PyObject *module);

static struct PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, "_kernels", "Compiled kernels.", -1, NULL, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__kernels(void) {
    PyObject *module = PyModule_Create(&MODULE);
    if (module && (add_features(module) || add_planes(module) || add_aes(module) || add_program(module) ||
                   add_field(module) || add_mersenne(module) || add_ot(module) || add_half_gates(module) || add_gf64(module) || add_crew(module) ||
                   add_points(module) || add_blank(module) || add_hashes(module) || add_lifts(module) || add_shares(module) ||
                   PyModule_AddIntConstant(module, "KERNELS", 2)))
        Py_CLEAR(module);
    return module;
}
