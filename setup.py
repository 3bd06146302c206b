"""The extension of compiled kernels; everything else is in pyproject.toml."""

import sys
import sysconfig
from glob import glob

from setuptools import Extension, setup

ABI = "cp311"  # one build serves CPython 3.11 and later
limited = sys.implementation.name == "cpython" and not sysconfig.get_config_var("Py_GIL_DISABLED")

setup(
    ext_modules=[
        Extension(
            "dpmpc.mpc.native._kernels",
            sorted(glob("dpmpc/mpc/native/*.c")),
            depends=sorted(glob("dpmpc/mpc/native/*.h")),
            define_macros=[("Py_LIMITED_API", "0x030B0000")] if limited else [],
            extra_compile_args=["-O3", "-std=gnu11", "-fvisibility=hidden", "-Wall", "-Wextra"],
            py_limited_api=limited,
            optional=True,  # without a compiler the NumPy twins do the same work
        )
    ],
    options={"bdist_wheel": {"py_limited_api": ABI}} if limited else {},
)
