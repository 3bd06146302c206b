"""The extensions of compiled kernels, and the package's page as a registry shows it; the rest is in pyproject.toml."""

import re
import sys
import sysconfig
import tomllib
from glob import glob
from pathlib import Path

from setuptools import Extension, setup

ABI = "cp311"  # one build serves CPython 3.11 and later
limited = sys.implementation.name == "cpython" and not sysconfig.get_config_var("Py_GIL_DISABLED")


def extension(name: str, sources: str) -> Extension:
    """Kernels that are built where there is a compiler; without one, NumPy twins do the same work."""
    return Extension(
        name,
        sorted(glob(f"{sources}/*.c")),
        depends=["dpmpc/buffers.h", *sorted(glob(f"{sources}/*.h"))],
        define_macros=[("Py_LIMITED_API", "0x030B0000")] if limited else [],
        # a product and a sum are rounded one after the other, as the twins do it
        extra_compile_args=["-O3", "-std=gnu11", "-ffp-contract=off", "-fvisibility=hidden", "-Wall", "-Wextra"],
        py_limited_api=limited,
        optional=True,
    )


def page(text: str, files: str, pictures: str) -> str:
    """README away from its tree: `files` and `pictures` are what comes before a path there. Without them no link and no
    picture leads into the tree, and the words of links stay."""
    relative = r"\((?![a-z]+:|#)([^()\s]+)\)"
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(rf"!\[([^\]]*)\]{relative}\n*", rf"![\1]({pictures}\2)\n\n" if pictures else "", text)
    return re.sub(rf"(?<!!)\[([^\]]*)\]{relative}", rf"[\1]({files}\2)" if files else r"\1", text)


here = Path(__file__).parent
address = tomllib.loads((here / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["dpmpc"]["address"]

setup(
    long_description=page((here / "README.md").read_text(encoding="utf-8"), address["files"], address["pictures"]),
    long_description_content_type="text/markdown",
    project_urls={
        name: value
        for name, value in {
            "Homepage": address["home"],
            "Documentation": address["files"] and f"{address['files']}docs/index.md",
            "Changelog": address["files"] and f"{address['files']}CHANGELOG.md",
        }.items()
        if value
    },
    ext_modules=[
        extension("dpmpc.mpc.native._kernels", "dpmpc/mpc/native"),
        extension("dpmpc.records._rows", "dpmpc/records"),
        extension("dpmpc.intake._numbers", "dpmpc/intake"),
    ],
    options={"bdist_wheel": {"py_limited_api": ABI}} if limited else {},
)
