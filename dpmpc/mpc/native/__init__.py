"""Compiled kernels and their NumPy twins: which of the two is in use, and where to add one.

One C extension, `_kernels`, is built when the package is installed, if there is a C compiler; without it, or with
DPMPC_NATIVE=off in the environment, every kernel is its NumPy twin, with the same bits. DPMPC_NATIVE=portable uses the
extension without the vector and AES units of this processor, a list of features with those alone. `docs/native.md` says
why C.

A kernel is: a function in a .c file here (every .c file is compiled; `kernels.h` has the rules), a line in
`_kernels.pyi`, a typed function with its twin in a .py file here, and a test that holds the two against each other.
"""
