# SPDX-License-Identifier: MIT
"""Processes to watch, in a folder of pages of their own."""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time


class Watched:
    def __init__(self, worker, kinds):
        self.folder = tempfile.mkdtemp(prefix="unfrag-watched-")
        self.environment = dict(os.environ, UNFRAG_MONITOR_DIR=self.folder, LANG="C.UTF-8")
        for name in ("LC_ALL", "LC_CTYPE", "NO_COLOR", "LD_LIBRARY_PATH"):
            self.environment.pop(name, None)
        self.workers = []
        for kind in kinds:
            process = subprocess.Popen([worker, kind, "300", f"python {kind}.py --batch 4"],
                                       env=self.environment, stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, text=True)
            self.workers.append(process)
            if process.stdout.readline() != "ready\n":
                raise SystemExit(f"the worker {kind} did not start")

    def pid(self, number):
        return self.workers[number].pid

    def end(self, number):
        process = self.workers[number]
        process.stdin.close()
        process.wait(20)

    def close(self):
        for process in self.workers:
            if process.poll() is None:
                with contextlib.suppress(BrokenPipeError):
                    process.stdin.close()
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


class Checks:
    """Counts what holds; ends the program with 1 if anything did not."""

    def __init__(self):
        self.failed = 0

    def that(self, name, is_so, shown=""):
        print(("good: " if is_so else "FAILED: ") + name)
        if not is_so:
            self.failed += 1
            if shown:
                print(shown)

    def end(self):
        sys.exit(1 if self.failed else 0)


def wait_until(condition, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return bool(condition())


def need(program, package):
    """The path of a program, or an end with the package that has it (exit 77: ctest skips)."""
    found = shutil.which(program)
    if found is None:
        print(f"{program} is not there: apt-get install {package} (scripts/setup test does it)")
        sys.exit(77)
    return found
