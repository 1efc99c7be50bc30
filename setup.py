# SPDX-License-Identifier: MIT
"""Beside the Python files the package holds libunfrag and the glue's sources, which are compiled
against the user's torch on first use. Everything else is in pyproject.toml."""

import glob
import os
import re
import shlex
import shutil
import subprocess

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

ROOT = os.path.dirname(os.path.abspath(__file__))


def library_sources():
    """libunfrag's files, as CMakeLists.txt names them."""
    with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as stream:
        listed = re.search(r"file\(GLOB UNFRAG_LIB_SOURCES CONFIGURE_DEPENDS([^)]*)\)", stream.read())
    return [path for pattern in listed.group(1).split()
            for path in sorted(glob.glob(os.path.join(ROOT, pattern)))]


class BuildWithLibrary(build_py):
    def run(self):
        super().run()
        package = os.path.join(self.build_lib, "unfrag")
        for folder, pattern in (("torch", "torch/*.[ch]*"), ("include/unfrag", "include/unfrag/*.h"),
                                ("torch/include-shim/crt", "torch/include-shim/crt/*.h")):
            os.makedirs(os.path.join(package, folder), exist_ok=True)
            for path in glob.glob(os.path.join(ROOT, pattern)):
                shutil.copy(path, os.path.join(package, folder))
        self.compile_library(os.path.join(package, "libunfrag.so.0"))

        self.compile_library(os.path.join(package, "libunfrag_plain.so"), is_plain=True)

    @staticmethod
    def compile_library(output, is_plain=False):
        compiler = os.environ.get("CC") or next(
            (name for name in ("cc", "gcc", "clang") if shutil.which(name)), None)
        if compiler is None:
            raise SystemExit("unfrag: a C compiler is needed (Debian, Ubuntu: apt install gcc)")
        files = [os.path.join(ROOT, "torch", "plain.c"), "-fexceptions",
                 os.path.join(os.path.dirname(output), "libunfrag.so.0"), "-Wl,-rpath,$ORIGIN"] \
            if is_plain else ["-Wl,-soname,libunfrag.so.0", *library_sources()]
        subprocess.run([compiler, "-std=gnu11", "-O3", "-DNDEBUG", "-D_GNU_SOURCE", "-fPIC",
                        '-DUF_VERSION="0.1.0"', "-fvisibility=hidden", f"-I{ROOT}/include",
                        f"-I{ROOT}/src", "-shared",
                        *shlex.split(os.environ.get("CFLAGS", "")), *files, "-pthread",
                        "-ldl", "-lm", "-o", output], check=True)


class BinaryDistribution(Distribution):
    def has_ext_modules(self):
        return True  # the wheel is of one platform


setup(cmdclass={"build_py": BuildWithLibrary}, distclass=BinaryDistribution)
