#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The installed library as a stranger uses it: installed_test.py ROOT BUILD CC CXX.

Installs a build, and unpacks its Debian package; builds examples/hello.c against each through
pkg-config and through find_package, shared and static, and compares what it prints. Every public
header compiles alone, as C11 and as C++17. libunfrag.so is under 300 KiB stripped, and exports what
tests/packaging/symbols.txt lists, neither less nor more.
"""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

LIBRARY_BYTES_MOST = 300 * 1024
ROOT, BUILD, CC, CXX = sys.argv[1:5]
LIST = os.path.join(ROOT, "tests", "packaging", "symbols.txt")
EXAMPLE = os.path.join(ROOT, "examples", "hello.c")
PROJECT = """cmake_minimum_required(VERSION 3.22)
project(user LANGUAGES C)
find_package(unfrag 0.1 REQUIRED)
add_executable(hello hello.c)
target_link_libraries(hello PRIVATE unfrag::unfrag)
add_executable(hello_static hello.c)
target_link_libraries(hello_static PRIVATE unfrag::static)
"""


class Fault(Exception):
    pass


def run(*words, **options):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          stdin=subprocess.DEVNULL, check=False, **options)
    if done.returncode != 0:
        raise Fault(f"{' '.join(words)} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def one(folder, name):
    found = [place for place in glob.glob(os.path.join(folder, "**", name), recursive=True)]
    if not found:
        raise Fault(f"{folder} has no {name}")
    return found[0]


def use_by_pkg_config(prefix, folder):
    """What hello prints, built with pkg-config's words."""
    libraries = os.path.dirname(one(prefix, "libunfrag.so"))
    environment = dict(os.environ, PKG_CONFIG_PATH=os.path.join(libraries, "pkgconfig"))
    words = run("pkg-config", "--cflags", "--libs", "unfrag", env=environment).split()
    program = os.path.join(folder, "hello")
    run(CC, "-std=c11", EXAMPLE, "-o", program, *words)
    return run(program, env=dict(os.environ, LD_LIBRARY_PATH=libraries))


def use_by_cmake(prefix, folder):
    """What hello prints, linked to the shared and to the static library."""
    source = os.path.join(folder, "user")
    os.mkdir(source)
    shutil.copy(EXAMPLE, source)
    with open(os.path.join(source, "CMakeLists.txt"), "w", encoding="utf-8") as file:
        file.write(PROJECT)
    build = os.path.join(source, "build")
    run("cmake", "-S", source, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DCMAKE_C_COMPILER={CC}")
    run("cmake", "--build", build)
    return [run(os.path.join(build, name)) for name in ("hello", "hello_static")]


def check_use(prefix, folder, expected):
    for printed in [use_by_pkg_config(prefix, folder), *use_by_cmake(prefix, folder)]:
        if printed != expected:
            raise Fault(f"hello, built against {prefix}, prints:\n{printed}")


def test_an_installation_is_used_through_pkg_config_and_cmake(folder, expected):
    prefix = os.path.join(folder, "prefix")
    run("cmake", "--install", BUILD, "--prefix", prefix)
    moved = os.path.join(folder, "moved")  # the files must not depend on where it was installed
    os.rename(prefix, moved)
    check_use(moved, folder, expected)
    run(os.path.join(moved, "bin", "unfrag"), "--version")


def test_the_debian_package_is_used_the_same_way(folder, expected):
    run("cpack", "--config", os.path.join(BUILD, "CPackConfig.cmake"), "-B", folder, "-G", "DEB")
    package = one(folder, "unfrag_*.deb")
    fields = run("dpkg-deb", "-f", package)
    for wanted in (r"^Package: unfrag$", r"^Depends: .*libc6 \(", r"^Version: 0\.1\.0"):
        if not re.search(wanted, fields, re.M):
            raise Fault(f"the package's fields lack {wanted}:\n{fields}")
    unpacked = os.path.join(folder, "unpacked")
    run("dpkg-deb", "-x", package, unpacked)
    check_use(os.path.join(unpacked, "usr"), folder, expected)


def test_every_header_compiles_alone_in_c_and_c_plus_plus(_folder, _expected):
    include = os.path.join(ROOT, "include")
    for path in sorted(glob.glob(os.path.join(include, "unfrag", "*.h"))):
        line = f"#include <unfrag/{os.path.basename(path)}>\n"
        for compiler, language, standard in ((CC, "c", "c11"), (CXX, "c++", "c++17")):
            done = subprocess.run([compiler, "-x", language, f"-std={standard}", "-Wall", "-Wextra",
                                   "-Wpedantic", "-Werror", "-fsyntax-only", f"-I{include}", "-"],
                                  input=line, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise Fault(f"{path} as {standard}:\n{done.stderr}")


def test_the_library_is_small_and_exports_what_is_listed(folder, _expected):
    library = os.path.realpath(one(BUILD, "libunfrag.so"))
    stripped = os.path.join(folder, "stripped.so")
    run("strip", "-o", stripped, library)
    if os.path.getsize(stripped) > LIBRARY_BYTES_MOST:
        raise Fault(f"libunfrag.so has {os.path.getsize(stripped)} bytes stripped; at most "
                    f"{LIBRARY_BYTES_MOST}")
    exported = {line.split()[-1].split("@")[0]
                for line in run("nm", "-D", "--defined-only", library).splitlines()}
    with open(LIST, encoding="utf-8") as file:
        listed = {line.strip() for line in file if line.strip() and not line.startswith("#")}
    faults = [f"{name} is exported and not listed in {LIST}: add it" for name in
              sorted(exported - listed)]
    faults += [f"{name} is listed and no longer exported: programs that use it break" for name in
               sorted(listed - exported)]
    if faults:
        raise Fault("\n".join(faults))


def main():
    expected = run(one(os.path.join(BUILD, "tests"), "example_hello"))
    passed = failed = 0
    for name, test in list(globals().items()):
        if not name.startswith("test_"):
            continue
        with tempfile.TemporaryDirectory(prefix="unfrag-installed-") as folder:
            try:
                test(folder, expected)
                passed += 1
            except Fault as fault:
                failed += 1
                print(f"{name}: {fault}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
