#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Breaks one rule of the policy's parts at a time and expects the part's unit test to notice.

parts_run.py --source ROOT --cc CC [--only NAME] [--libraries "FLAGS"]

As run.py, but what is linked are unit tests (tests/unit/NOUN_test.c) in the place of verify, and a
program that crashes or does not end has noticed, too.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile

from parts import MUTATIONS
from run import Bench

PARTS = ("base", "device", "alloc")
TIMEOUT_SECONDS = 300
# A test that does not end is ended by the check library, which alone knows its processes: after a
# fifth of the minute that tests have.
TIMEOUT_SHARE = "0.2"


class PartsBench(Bench):
    """The library's sources, and a unit test for each part."""

    def __init__(self, options, folder, tests):  # pylint: disable=super-init-not-called
        self.options = options
        self.folder = folder
        self.source = os.path.join(folder, "src")
        shutil.copytree(os.path.join(options.source, "src"), self.source)
        self.files = {f"unit/{test}": os.path.join(options.source, "tests", "unit", f"{test}_test.c")
                      for test in tests}
        for part in PARTS:
            for name in sorted(os.listdir(os.path.join(self.source, part))):
                if name.endswith(".c"):
                    self.files[f"{part}/{name}"] = os.path.join(self.source, part, name)

    def passes(self, test):
        """Whether the test is content."""
        program = os.path.join(self.folder, test)
        objects = [self.object(name) for name in self.files
                   if name == f"unit/{test}" or not name.startswith("unit/")]
        subprocess.run([self.options.cc, "-o", program, *objects, *self.options.libraries.split()],
                       check=True)
        try:
            done = subprocess.run([program], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                  timeout=TIMEOUT_SECONDS, check=False,
                                  env=dict(os.environ, CK_TIMEOUT_MULTIPLIER=TIMEOUT_SHARE))
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0


def judge(bench, mutation):
    """True if the broken rule was noticed."""
    path, kept = bench.mutate(mutation)
    if path is None:
        print(f"FAILED {mutation.name}: the rule was not found: {kept}")
        return False
    names = [name for name in bench.dependents(path)
             if not name.startswith("unit/") or name == f"unit/{mutation.test}"]
    for name in names:
        os.rename(bench.object(name), bench.object(name) + ".kept")
    bench.compile(names)
    is_noticed = not bench.passes(mutation.test)
    with open(path, "w", encoding="utf-8") as file:
        file.write(kept)
    for name in names:
        os.rename(bench.object(name) + ".kept", bench.object(name))
    print(f"{'ok     ' if is_noticed else 'FAILED '}{mutation.name} ({mutation.test})"
          f"{'' if is_noticed else ': nobody noticed'}")
    return is_noticed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", required=True)
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--libraries", default="-lcheck -lm -lrt -lsubunit -lpthread -ldl")
    parser.add_argument("--only", help="one mutation by name")
    options = parser.parse_args()
    chosen = [m for m in MUTATIONS if options.only in (None, m.name)]
    tests = sorted({mutation.test for mutation in chosen})
    with tempfile.TemporaryDirectory(prefix="unfrag-parts-") as folder:
        bench = PartsBench(options, folder, tests)
        bench.compile(bench.files)
        unhappy = [test for test in tests if not bench.passes(test)]
        if unhappy:
            print(f"FAILED unbroken: {', '.join(unhappy)}\n0 passed, 1 failed")
            return 1
        print("ok     unbroken: " + ", ".join(tests))
        passed = 1 + sum(judge(bench, mutation) for mutation in chosen)
    failed = len(chosen) + 1 - passed
    print(f"{passed} passed, {failed} failed")
    return 0 if failed == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
