#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PyTorch's own tests of its CUDA allocator, on its own allocator and on unfrag, side by side.

    upstream.py --file test_cuda.py [--unfrag PROGRAM] [--policy NAME]... [--select EXPRESSION]
                [--workers N] [--seconds S] [--table FILE.md] [--log FOLDER]

FILE is test/test_cuda.py of a PyTorch source tree near the installed version. It is run with
pytest from a copy in which names that the installed torch.testing lacks stand for decorators that
do nothing; a test that needs such a name fails on both sides, and only differences count. Each
test has a process of its own; what fails beside others is run again alone. Prints a table of what passes on PyTorch's own
allocator and fails under unfrag. Exit code: 0 none, 1 some, 2 the tests could not be run.
"""

import argparse
import ast
import concurrent.futures
import importlib
import os
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
SELECT = ("(TestCuda or TestCudaAllocator or TestBlockStateAbsorption or TestMemPool or "
          "TestCachingHostAllocatorCudaGraph or TestFXMemoryProfiler or TestCudaDeviceParametrized)"
          " and not TestCudaOptims and not TestCudaAutocast and not multinomial "
          "and not cuda_kernel_loop and not huge_index and not large_tensor and not prod_large")
# What a name that is missing stands for: a decorator with or without arguments, false as a value.
STAND_IN = '''
class _Missing:
    def __bool__(self):
        return False

    def __call__(self, *given, **named):
        if len(given) == 1 and not named and callable(given[0]):
            return given[0]
        return self
'''
EXPECTTEST = '''
import unittest


class TestCase(unittest.TestCase):
    def assertExpectedInline(self, actual, expect, skip=0):
        self.assertEqual(actual, expect)

    def assertExpectedRaisesInline(self, kind, call, expect, *given, **named):
        with self.assertRaises(kind) as caught:
            call(*given, **named)
        self.assertEqual(str(caught.exception), expect)
'''


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--file", required=True)
    parser.add_argument("--unfrag", default=os.path.join(ROOT, "build", "unfrag"))
    parser.add_argument("--policy", action="append", choices=["unfrag", "torch"])
    parser.add_argument("--select", default=SELECT)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--seconds", type=int, default=60, help="for one test")
    parser.add_argument("--table", metavar="FILE.md")
    parser.add_argument("--log", metavar="FOLDER")
    return parser.parse_args()


def missing_names(tree):
    """(names to define, import lines as (first, last) to rewrite with the names they keep)."""
    names, rewrites = [], []
    for node in tree.body:
        if not isinstance(node, ast.ImportFrom) or node.level or not node.module:
            continue
        if not node.module.startswith("torch"):
            continue
        try:
            module = importlib.import_module(node.module)
        except ImportError:
            module = None
        lost = [alias for alias in node.names if not hasattr(module, alias.name)]
        if lost:
            kept = [ast.unparse(alias) for alias in node.names if alias not in lost]
            names += [alias.asname or alias.name for alias in lost]
            rewrites.append((node.lineno, node.end_lineno, node.module, kept))
    return names, rewrites


def prepare(source_path, folder):
    """A copy of the tests that the installed torch can import. Returns its path."""
    with open(source_path, encoding="utf-8") as file:
        source = file.read()
    try:
        importlib.import_module("expecttest")
    except ImportError:
        with open(os.path.join(folder, "expecttest.py"), "w", encoding="utf-8") as file:
            file.write(EXPECTTEST)
        sys.path.insert(0, folder)
    names, rewrites = missing_names(ast.parse(source))
    lines = source.split("\n")
    for first, last, module, kept in reversed(rewrites):
        text = f"from {module} import {', '.join(kept)}" if kept else ""
        lines[first - 1:last] = [text] + [""] * (last - first)
    if names:
        where = next(i for i, line in enumerate(lines) if line.startswith("import "))
        lines[where] = (STAND_IN + "\n".join(f"{name} = _Missing()" for name in names) + "\n"
                        + lines[where])
        print("names the installed torch lacks:", ", ".join(names), flush=True)
    path = os.path.join(folder, "test_cuda.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines))
    return path


def collect(options, path, environment):
    """The names of the selected tests, Class::test."""
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "--collect-only", "-k",
                           options.select, path], cwd=os.path.dirname(path), env=environment,
                          capture_output=True, text=True, check=False)
    return [line.split("::", 1)[1] for line in done.stdout.split("\n") if "::" in line]


def once(options, path, environment, setting, name):
    """One test in a process of its own: (state, first line of the failure)."""
    words = [] if setting == "stock" else [options.unfrag, "run", "--require", "--policy", setting,
                                           "--"]
    words += [sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider",
              f"{path}::{name}"]
    with subprocess.Popen(words, cwd=os.path.dirname(path), env=environment, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          start_new_session=True) as process:
        try:
            output, _ = process.communicate(timeout=options.seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGABRT)  # leaves the stacks in the output
            time.sleep(1)
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            output += f"\nE   no end after {options.seconds} s\n"
    code = process.returncode
    if options.log and code:
        os.makedirs(options.log, exist_ok=True)
        with open(os.path.join(options.log, "failures.txt"), "a", encoding="utf-8") as file:
            file.write(f"\n##### {setting} {name} {code}\n{output[-20000:]}")
    if code == 0:
        return ("skipped" if " passed" not in output else "passed"), ""
    lines = [line for line in output.split("\n") if line.startswith("E ")]
    return "failed", (lines[0][2:].strip() if lines else f"ended with {code}")[:160]


def run(options, path, environment, setting, names):
    """{test: (passed | failed | skipped, message)} under 'stock' or a policy; what fails beside
    others is run again alone."""
    with concurrent.futures.ThreadPoolExecutor(options.workers) as pool:
        found = dict(zip(names, pool.map(
            lambda name: once(options, path, environment, setting, name), names)))
    for name in [name for name, (state, _) in found.items() if state == "failed"]:
        if setting == "stock" or found[name][1].startswith("no end"):
            continue
        found[name] = once(options, path, environment, setting, name)
    return found


def main():
    options = arguments()
    options.unfrag = os.path.abspath(options.unfrag)
    settings = ["stock", *(options.policy or ["unfrag", "torch"])]
    with tempfile.TemporaryDirectory() as folder:
        path = prepare(options.file, folder)
        environment = dict(os.environ, PYTHONUNBUFFERED="1", PYTHONFAULTHANDLER="1",
                           PYTHONPATH=folder + os.pathsep + os.environ.get("PYTHONPATH", ""))
        names, found = collect(options, path, environment), {}
        for setting in settings:
            found[setting] = run(options, path, environment, setting, names)
            states = [state for state, _ in found[setting].values()]
            print(f"{setting}: " + ", ".join(f"{states.count(state)} {state}" for state in
                                             ("passed", "failed", "skipped")), flush=True)
            names = [name for name in names if found["stock"][name][0] == "passed"]
    if not all(found.values()):
        return 2
    lines = ["| test | setting | first line of the failure |", "|---|---|---|"]
    for name, (state, _) in sorted(found["stock"].items()):
        for setting in settings[1:]:
            other, message = found[setting].get(name, ("failed", "did not end"))
            if state == "passed" and other == "failed":
                message = message.replace("|", "\\|")
                lines.append(f"| `{name.replace('::', '.')}` | {setting} | {message} |")
    text = "\n".join(lines)
    print(text)
    if options.table:
        with open(options.table, "w", encoding="utf-8") as file:
            file.write(text + "\n")
    return 1 if len(lines) > 2 else 0


if __name__ == "__main__":
    sys.exit(main())
