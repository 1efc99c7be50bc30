#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Does every statement on PyTorch have its tests? statements.py [ROOT]

statements.tsv names, for each statement of docs/internals/torch-policy.md that was seen on a GPU, the
section and the tests. Fails if a section is not on that page, a test is not in the sources (or is
there and not run), or a line is not what it should be. --self-test breaks each rule once.
"""

import glob
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
NAME = re.compile(r"^[a-z][a-z0-9]*(_[a-z0-9]+)+$")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def tests_of(root):
    """The names of all tests that run: check library, conformance lists, command line."""
    names = set()
    for path in glob.glob(os.path.join(root, "tests", "*", "*.c")):
        text = read(path)
        for name in re.findall(r"^START_TEST\((\w+)\)", text, re.M):
            # Once where it is defined, and once more where it is added.
            if len(re.findall(rf"\b{name}\b", text)) > 1:
                names.add(name)
        if os.path.basename(path).startswith("conformance_"):
            names.update(re.findall(r"^\s*\{\"(\w+)\",", text, re.M))
    for path in glob.glob(os.path.join(root, "tests", "cli", "*.test")):
        names.update(re.findall(r"^== (\w+)$", read(path), re.M))
    return names


def sections_of(page):
    sections = set(re.findall(r"^## (\d+)\.", page, re.M))
    for bold in re.findall(r"\*\*([\d., ]+)\*\*", page):
        sections.update(re.findall(r"\d+\.\d+", bold))
    last = page[page.index("## 12."):] if "## 12." in page else ""
    sections.update(f"12 ({letter})" for letter in re.findall(r"\*\*\((\w)\)\*\*", last))
    return sections


def findings_of(table, page, tests):
    lines = table.rstrip("\n").split("\n")
    findings = []
    if lines[0] != "section\tstatement\ttests":
        findings.append("line 1: the head is not section, statement, tests")
    sections = sections_of(page)
    seen = set()
    for number, line in enumerate(lines[1:], 2):
        fields = line.split("\t")
        if len(fields) != 3 or not all(fields):
            findings.append(f"line {number}: not three fields")
            continue
        section, statement, named = fields
        if section not in sections:
            findings.append(f"line {number}: there is no section {section}")
        if (section, statement) in seen:
            findings.append(f"line {number}: twice: {statement}")
        seen.add((section, statement))
        for name in named.split(" "):
            if not NAME.match(name):
                findings.append(f"line {number}: '{name}' is no name of a test")
            elif name not in tests:
                findings.append(f"line {number}: there is no test {name}")
    return findings, len(lines) - 1


def self_test():
    page = "## 1. Sizes\n**1.2** Rounding (**1.3**).\n## 12. Beliefs\n**(a)** one\n"
    head = "section\tstatement\ttests\n"
    tests = {"one_is_one"}
    good = ("1.2\tx\tone_is_one", "1.3\ty\tone_is_one", "1\tx\tone_is_one", "12 (a)\tz\tone_is_one")
    bad = ("1.4\tx\tone_is_one", "12 (b)\tx\tone_is_one", "1.2\tx\ttwo_is_two", "1.2\tx\t",
           "1.2\tone_is_one", "1.2\tx\tone_is_one two", "1.2\tx\tone_is_one\n1.2\tx\tone_is_one")
    wrong = [line for line in good if findings_of(head + line, page, tests)[0]]
    wrong += [line for line in bad if len(findings_of(head + line, page, tests)[0]) != 1]
    wrong += [] if findings_of("a\tb\tc", page, tests)[0] else ["head"]
    for line in wrong:
        print(f"self-test: misjudged: {line!r}")
    print(f"{len(good) + len(bad) + 1 - len(wrong)} passed, {len(wrong)} failed")
    return 1 if wrong else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(HERE))
    findings, count = findings_of(read(os.path.join(HERE, "statements.tsv")),
                                  read(os.path.join(root, "docs", "internals", "torch-policy.md")),
                                  tests_of(root))
    for finding in findings:
        print(f"statements.tsv: {finding}")
    print(f"{count} statements, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
