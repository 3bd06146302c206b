/* Checked buffers: the arrays that a caller gives to a kernel. */

#include "kernels.h"

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
