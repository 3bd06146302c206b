/* Memory to receive into. */

#include "kernels.h"

static PyObject *blank(PyObject *self, PyObject *args) {
    Py_ssize_t size;
    (void)self;
    if (!PyArg_ParseTuple(args, "n", &size)) return NULL;
    if (size < 0) return PyErr_Format(PyExc_ValueError, "size must be at least 0; got %zd", size);
    return PyByteArray_FromStringAndSize(NULL, size);
}

static PyMethodDef METHODS[] = {
    {"blank", blank, METH_VARARGS, "blank(size): a bytearray that nothing was written to."},
    {NULL, NULL, 0, NULL},
};

int add_blank(PyObject *module) { return PyModule_AddFunctions(module, METHODS); }
