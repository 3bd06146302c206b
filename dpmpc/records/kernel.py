"""The compiled kernels of records, where there are any: each has a NumPy twin beside its caller, with the same bits."""

from functools import partial

from dpmpc.lazy import kernels

compiled = partial(kernels, "dpmpc.records._rows")
