"""The extensions of compiled kernels; everything else is in pyproject.toml."""

import sys
import sysconfig
from glob import glob

from setuptools import Extension, setup

ABI = "cp311"  # one build serves CPython 3.11 and later
limited = sys.implementation.name == "cpython" and not sysconfig.get_config_var("Py_GIL_DISABLED")


def extension(name: str, sources: str) -> Extension:
    """Kernels that are built where there is a compiler; without one, NumPy twins do the same work."""
    return Extension(
        name,
        sorted(glob(f"{sources}/*.c")),
        depends=sorted(glob(f"{sources}/*.h")),
        define_macros=[("Py_LIMITED_API", "0x030B0000")] if limited else [],
        # a product and a sum are rounded one after the other, as the twins do it
        extra_compile_args=["-O3", "-std=gnu11", "-ffp-contract=off", "-fvisibility=hidden", "-Wall", "-Wextra"],
        py_limited_api=limited,
        optional=True,
    )


setup(
    ext_modules=[
        extension("dpmpc.mpc.native._kernels", "dpmpc/mpc/native"),
        extension("dpmpc.records._rows", "dpmpc/records"),
        extension("dpmpc.intake._numbers", "dpmpc/intake"),
    ],
    options={"bdist_wheel": {"py_limited_api": ABI}} if limited else {},
)
