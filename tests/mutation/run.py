#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Breaks one rule of the allocator at a time and expects verify to notice.

run.py --source ROOT --library LIBUNFRAG_TOOLS --cc CC [--only NAME]

A copy of src/ is built once into objects and linked with verify.c, and with the driver of operation
logs (readers of traces come from the library as it is). For each mutation the named text of one file is replaced, what depends on it is
compiled again, and the recordings named are verified: unbroken they must be equal, broken at least
one must not. A text that is no longer there, or there twice, is a failure: look what became of the
rule, and change mutations.py.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

from mutations import MUTATIONS

PARTS = ("base", "device", "alloc", "replay")
OPLOG = ("core_model.c", "driver.c", "expect.c", "model.c", "oplog.c", "oplog_verify.c")
FLAGS = ("-std=gnu11", "-O1", "-w", "-D_GNU_SOURCE", '-DUF_VERSION="0"')
LIBRARIES = ("-ljansson", "-lz", "-llzma", "-lzstd", "-lm", "-lpthread", "-ldl")


class Bench:
    """A copy of the sources and the objects made of it."""

    def __init__(self, options, folder):
        self.options = options
        self.folder = folder
        self.source = os.path.join(folder, "src")
        shutil.copytree(os.path.join(options.source, "src"), self.source)
        tests = os.path.join(options.source, "tests")
        self.files = {"mutation/verify.c": os.path.join(tests, "mutation", "verify.c")}
        for name in OPLOG:
            self.files[f"oplog/{name}"] = os.path.join(tests, "oplog", name)
        for part in PARTS:
            for name in sorted(os.listdir(os.path.join(self.source, part))):
                if name.endswith(".c"):
                    self.files[f"{part}/{name}"] = os.path.join(self.source, part, name)
        self.limits = {}
        with open(os.path.join(options.source, "data", "index.tsv"), encoding="utf-8") as index:
            for line in list(index)[1:]:
                name, _, limit = line.split("\t")[:3]
                self.limits[name] = 0 if limit == "none" else int(limit)

    def object(self, name):
        return os.path.join(self.folder, name.replace("/", "-") + ".o")

    def compile(self, names):
        """Two at a time; a file that does not compile ends the run."""
        running = []
        for name in [*names, None, None]:
            if len(running) == 2 or name is None:
                if not running:
                    continue
                done, process = running.pop(0)
                text = process.communicate()[0]
                if process.returncode != 0:
                    sys.exit(f"{done} does not compile:\n{text}")
            if name is not None:
                command = [self.options.cc, *FLAGS, "-I" + os.path.join(self.options.source, "include"),
                           "-I" + self.source, "-I" + os.path.join(self.options.source, "tests"),
                           "-MMD", "-c", self.files[name], "-o",
                           self.object(name)]
                running.append((name, subprocess.Popen(
                    command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)))

    def dependents(self, path):
        """The files that are compiled with `path` in them."""
        found = []
        for name in self.files:
            with open(self.object(name)[:-2] + ".d", encoding="utf-8") as rules:
                if re.search(re.escape(path) + r"(\s|$)", rules.read()):
                    found.append(name)
        return found

    def link(self, main):
        """A program of the objects of `main` ("mutation" or "oplog") and of the sources."""
        program = os.path.join(self.folder, main)
        objects = [self.object(name) for name in self.files
                   if name.startswith((main + "/", *(part + "/" for part in PARTS)))]
        command = [self.options.cc, "-o", program, *objects, self.options.archive, *LIBRARIES]
        subprocess.run(command, check=True)
        return program

    def verify(self, recordings):
        """The exit status, and what was said."""
        data = os.path.join(self.options.source, "data")
        logs = os.path.join(self.options.source, "tests", "data", "oplogs")
        plain = [f"{name}={self.limits[name]}" for name in recordings if ":" not in name]
        commands = [[self.link("mutation"), data, *plain]] if plain else []
        for name in recordings:
            if name.startswith("oplog:"):
                commands.append([self.link("oplog"), os.path.join(logs, name[len("oplog:"):])])
        for command in commands:
            try:
                done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      text=True, timeout=120, check=False)
            except subprocess.TimeoutExpired:
                return -1, "no end"
            if done.returncode != 0:
                return done.returncode, done.stdout.strip()
        return 0, ""

    def mutate(self, mutation):
        """Edits the copy; returns what was there, or None and a reason."""
        path = os.path.join(self.source, mutation.file)
        with open(path, encoding="utf-8") as file:
            text = kept = file.read()
        for old, new in mutation.edits:
            if text.count(old) != 1:
                return None, f"{mutation.file} has {text.count(old)} times: {old}"
            text = text.replace(old, new)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path, kept


def judge(bench, mutation):
    """True if the broken rule was noticed."""
    path, kept = bench.mutate(mutation)
    if path is None:
        print(f"FAILED {mutation.name}: the rule was not found: {kept}")
        return False
    names = bench.dependents(path)
    for name in names:
        os.rename(bench.object(name), bench.object(name) + ".kept")
    bench.compile(names)
    status, text = bench.verify(mutation.recordings)
    with open(path, "w", encoding="utf-8") as file:
        file.write(kept)
    for name in names:
        os.rename(bench.object(name) + ".kept", bench.object(name))
    if status == 1:
        print(f"ok     {mutation.name}: {' '.join(text.split())[:200]}")
        return True
    what = "nobody noticed" if status == 0 else f"verify ended with {status}"
    print(f"FAILED {mutation.name}: {what} ({', '.join(mutation.recordings)}) {text}")
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", required=True)
    parser.add_argument("--library", dest="archive", required=True)
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--only", help="one mutation by name")
    options = parser.parse_args()
    chosen = [m for m in MUTATIONS if options.only in (None, m.name)]
    with tempfile.TemporaryDirectory(prefix="unfrag-mutation-") as folder:
        bench = Bench(options, folder)
        bench.compile(bench.files)
        recordings = sorted({name for mutation in chosen for name in mutation.recordings})
        status, text = bench.verify(recordings)
        if status != 0:
            print(f"FAILED unbroken: {text}\n0 passed, 1 failed")
            return 1
        print("ok     unbroken: " + ", ".join(recordings))
        passed = 1 + sum(judge(bench, mutation) for mutation in chosen)
    failed = len(chosen) + 1 - passed
    print(f"{passed} passed, {failed} failed")
    return 0 if failed == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
