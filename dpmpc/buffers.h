/* Checked buffers: the arrays that a caller gives to a kernel, of any of the extensions. */

#ifndef DPMPC_BUFFERS_H
#define DPMPC_BUFFERS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

/* Takes `object` as a contiguous array of bytes ('B'), uint16 ('H'), int32 ('i'), floats ('f'), words or integers of 64 bits ('Q',
'q') or doubles ('d'), at least `least` items long; `name`: what it is, for people. Returns 0, or -1 with an exception, and then
there is nothing to release. */
static inline int taken_as(Py_buffer *view, PyObject *object, const char *name, char kind, int writable, Py_ssize_t least) {
    if (PyObject_GetBuffer(object, view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0))) return -1;
    const char *format = view->format ? view->format : "B";
    char found = format[0] && !format[1] ? format[0] : '?';
    Py_ssize_t size = kind == 'B' ? 1 : kind == 'H' ? 2 : kind == 'i' || kind == 'f' ? 4 : 8;
    /* a word is 'L' or 'Q', an integer 'q', 'l' or 'i', by platform */
    int fits = view->itemsize == size && (found == kind || (kind == 'Q' && found == 'L') || ((kind == 'q' || kind == 'i') && found == 'l'));
    if (!fits)
        PyErr_Format(PyExc_TypeError, "%s must hold items of kind %c; got %s", name, kind, format);
    else if ((uintptr_t)view->buf % (uintptr_t)size)
        PyErr_Format(PyExc_ValueError, "%s must be aligned to %zd bytes", name, size);
    else if (view->len / size < least)
        PyErr_Format(PyExc_ValueError, "%s must hold at least %zd items; got %zd", name, least, view->len / size);
    else
        return 0;
    PyBuffer_Release(view);
    view->obj = NULL;
    return -1;
}

/* The same of an array without a name. */
static inline int taken(Py_buffer *view, PyObject *object, char kind, int writable, Py_ssize_t least) {
    return taken_as(view, object, "an array", kind, writable, least);
}

/* Whether two arrays share memory. */
static inline int overlap(const Py_buffer *a, const Py_buffer *b) {
    const char *x = (const char *)a->buf, *y = (const char *)b->buf;
    return x < y + b->len && y < x + a->len;
}

/* Releases arrays; those that were never taken are skipped if they were zeroed. */
static inline void released(Py_buffer *views, Py_ssize_t count) {
    for (Py_ssize_t k = 0; k < count; k++)
        if (views[k].obj) PyBuffer_Release(views + k);
}

#endif
