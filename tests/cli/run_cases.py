#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Golden tests of the command line: run_cases.py PROGRAM FILE.test... [--only NAME] [--bless].

A file holds cases:

    == the_name_is_a_sentence
    $ unfrag replay nothing.pickle
    -- exit 3
    -- stderr
    unfrag replay: nothing.pickle: [..]
    -- stdout
    ...

Lines with `$` are one shell script (sh -e is not set: the last exit code counts). It runs in an
empty folder, with PROGRAM's folder first in PATH, DATA = the bundled recordings, HERE = the folder
of the test file, FAKECUDA = the driver libraries without a GPU, no terminal and no input. Without `-- exit` 0 is expected; an output that is not
given must be empty. Wildcards: see expect.py. --bless rewrites the expected outputs of failing
cases with what came; look at the difference before you keep it.
"""

import os
import subprocess
import sys
import tempfile

import expect

TIMEOUT_SECONDS = 300


class Case:
    def __init__(self, name, line):
        self.name = name
        self.line = line
        self.head = []  # comment lines in front, kept by --bless
        self.commands = []
        self.exit = 0
        self.outputs = {"stdout": [], "stderr": []}

    def text(self):
        lines = self.head + [f"== {self.name}"] + [f"$ {c}" for c in self.commands]
        if self.exit:
            lines.append(f"-- exit {self.exit}")
        for name in ("stderr", "stdout"):
            if self.outputs[name]:
                lines += [f"-- {name}"] + self.outputs[name]
        return lines


def parse(path):
    cases, head, section = [], [], None
    with open(path, encoding="utf-8") as stream:
        lines = stream.read().split("\n")
    for number, line in enumerate(lines, 1):
        if line.startswith("== "):
            cases.append(Case(line[3:], number))
            cases[-1].head, head, section = head, [], None
        elif line.startswith("#") and section is None and not (cases and not cases[-1].commands):
            head.append(line)
        elif line.startswith("$ ") and section is None:
            cases[-1].commands.append(line[2:])
        elif line.startswith("-- exit "):
            cases[-1].exit = int(line[len("-- exit "):])
        elif line in ("-- stdout", "-- stderr"):
            section = line[3:]
        elif line == "" and next_starts_case(lines, number):
            section = None
        elif section is not None:
            cases[-1].outputs[section].append(line)
        elif line == "":
            head += [""] if head else []
        else:
            sys.exit(f"{path}:{number}: what is this line? {line!r}")
    return cases


def next_starts_case(lines, number):
    """Is what follows line `number` (1-based) a case, its comment, or the end of the file?"""
    for line in lines[number:]:
        if line.startswith("== ") or line.startswith("#"):
            return True
        if line != "":
            return False
    return True


def run(case, environment):
    with tempfile.TemporaryDirectory(prefix="unfrag-cli-") as folder:
        try:
            done = subprocess.run(["sh", "-c", "\n".join(case.commands)], cwd=folder,
                                  env=environment, stdin=subprocess.DEVNULL,
                                  capture_output=True, timeout=TIMEOUT_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return None
    texts = {name: getattr(done, name).decode("utf-8", "backslashreplace").replace(folder, "FOLDER")
             for name in ("stdout", "stderr")}
    return done.returncode, {name: expect.text_lines(text) for name, text in texts.items()}


def judge(case, result):
    """A list of complaints, empty if the case holds."""
    if result is None:
        return [f"took more than {TIMEOUT_SECONDS} s"]
    code, outputs = result
    complaints = []
    if code != case.exit:
        complaints.append(f"exit code {code}, expected {case.exit}")
    for name in ("stderr", "stdout"):
        if not expect.matches(case.outputs[name], outputs[name]):
            complaints.append(f"{name} differs; expected:")
            complaints += ["    " + line for line in case.outputs[name]] + ["  got:"]
            complaints += ["    " + line for line in outputs[name]]
    return complaints


def environment_for(program, path):
    folder = os.path.dirname(os.path.abspath(path))
    data = os.path.join(os.path.dirname(os.path.dirname(folder)), "data")
    environment = dict(os.environ, DATA=data, HERE=folder, LC_ALL="C.UTF-8", TERM="dumb",
                       UNFRAG_DATA=data)
    environment["FAKECUDA"] = os.path.join(os.path.dirname(os.path.abspath(program)), "tests",
                                           "fakecuda")
    environment["PATH"] = os.path.dirname(os.path.abspath(program)) + ":" + os.environ["PATH"]
    for name in ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "NO_COLOR", "ARGP_HELP_FMT",
                 "CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "CONDA_PREFIX",
                 "PYTHONPATH"):
        environment.pop(name, None)
    return environment


def run_file(program, path, only, is_blessing):
    cases = parse(path)
    environment = environment_for(program, path)
    passed = failed = 0
    for case in cases:
        if only and case.name != only:
            continue
        result = run(case, environment)
        complaints = judge(case, result)
        if not complaints:
            passed += 1
            continue
        if is_blessing and result is not None:
            case.exit, case.outputs = result
        failed += 1
        print(f"{path}:{case.line}: {case.name}")
        for line in complaints:
            print(f"  {line}")
    if is_blessing and failed:
        with open(path, "w", encoding="utf-8") as stream:
            stream.write("\n\n".join("\n".join(case.text()) for case in cases) + "\n")
    return passed, failed


def main():
    words = sys.argv[1:]
    only = None
    is_blessing = "--bless" in words
    if is_blessing:
        words.remove("--bless")
    if "--only" in words:
        at = words.index("--only")
        only = words[at + 1]
        del words[at:at + 2]
    if len(words) < 2:
        sys.exit(__doc__)
    counts = [run_file(words[0], path, only, is_blessing) for path in words[1:]]
    passed = sum(good for good, _ in counts)
    failed = sum(bad for _, bad in counts)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
