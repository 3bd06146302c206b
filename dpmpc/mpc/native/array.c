/* Checked buffers: the arrays that a caller gives to a kernel. */

#include "kernels.h"

int take(array *a, PyObject *object, const char *name, char kind, int writable, Py_ssize_t least) {
    if (taken_as(&a->view, object, name, kind, writable, least)) return -1;
    a->count = a->view.len / a->view.itemsize;
    return 0;
}

int apart(const array *a, const array *b, const char *names) {
    const char *x = a->view.buf, *y = b->view.buf;
    if (x + a->view.len <= y || y + b->view.len <= x) return 0;
    PyErr_Format(PyExc_ValueError, "%s must not share memory", names);
    return -1;
}

void give_back(array *arrays, int count) {
    for (int k = 0; k < count; k++) released(&arrays[k].view, 1);
}
