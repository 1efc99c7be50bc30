#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""libunfrag alone: library_alone.py ROOT COMPILER.

Builds it with -DUNFRAG_TOOLS=OFF where pkg-config finds nothing, installs it, and looks into the
shared library: it needs libc (and libm, libdl, libpthread of old) alone, exports names that start
with uf_ alone, and calls nothing that prints or ends the process.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

ALLOWED_LIBRARIES = re.compile(r"^(libc|libm|libdl|libpthread)\.so\.\d+$|^ld-linux")
FORBIDDEN_CALLS = {"exit", "_exit", "abort", "printf", "puts", "putchar", "perror", "fprintf",
                   "vprintf", "vfprintf", "fputs", "fputc", "__printf_chk", "__fprintf_chk",
                   "__vfprintf_chk", "__assert_fail", "system", "fork", "execve"}
# Writing a file somebody asked for (src/base/output.c, snapshots) goes to that stream alone.
ALLOWED_FOR_FILES = {"fputs", "fputc", "fprintf", "vfprintf", "__fprintf_chk", "__vfprintf_chk"}


def run(*command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          stdin=subprocess.DEVNULL, check=False, **options)
    if done.returncode != 0:
        print(done.stdout)
        sys.exit(f"failed: {' '.join(command)}")
    return done.stdout


def main():
    root, compiler = sys.argv[1:3]
    findings = []
    with tempfile.TemporaryDirectory(prefix="unfrag-alone-") as folder:
        empty = os.path.join(folder, "empty")
        os.mkdir(empty)
        environment = dict(os.environ, PKG_CONFIG_PATH=empty, PKG_CONFIG_LIBDIR=empty)
        generator = "Unix Makefiles" if shutil.which("make") else "Ninja"
        build = os.path.join(folder, "build")
        prefix = os.path.join(folder, "prefix")
        run("cmake", "-S", root, "-B", build, "-G", generator, "-DUNFRAG_TOOLS=OFF",
            f"-DCMAKE_C_COMPILER={compiler}", "-DCMAKE_BUILD_TYPE=Debug", env=environment)
        run("cmake", "--build", build, "-j2", env=environment)
        run("cmake", "--install", build, "--prefix", prefix)
        library = find(prefix, "libunfrag.so")
        for needed in re.findall(r"NEEDED\s+(\S+)", run("objdump", "-p", library)):
            if not ALLOWED_LIBRARIES.match(needed):
                findings.append(f"libunfrag.so needs {needed}")
        for name in symbols(library, "--defined-only"):
            if not name.startswith("uf_") or name.startswith("uf__"):
                findings.append(f"libunfrag.so exports {name}")
        calls = set(symbols(library, "--undefined-only"))
        findings += [f"libunfrag.so calls {name}"
                     for name in sorted(calls & (FORBIDDEN_CALLS - ALLOWED_FOR_FILES))]
        if find(prefix, "status.h") is None:
            findings.append("the headers are not installed")
    for finding in findings:
        print(finding)
    return 1 if findings else 0


def find(folder, name):
    for place, _, names in os.walk(folder):
        if name in names:
            return os.path.join(place, name)
    return None


def symbols(library, kind):
    lines = run("nm", "-D", kind, library).split("\n")
    return [line.split()[-1].split("@")[0] for line in lines if line.strip()]


if __name__ == "__main__":
    sys.exit(main())
