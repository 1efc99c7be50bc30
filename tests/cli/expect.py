# SPDX-License-Identifier: MIT
"""Compares output with what is expected, with two wildcards, as golden tests and docs write them:
a line `...` stands for any number of lines, `[..]` inside a line for any text."""

import re


def line_pattern(line):
    return re.compile(".*".join(re.escape(part) for part in line.split("[..]")) + r"\Z")


def matches(expected, actual):
    """Do the lines of actual fit the lines of expected? Both are lists of lines."""
    reachable = {0}  # how many lines of actual may be consumed so far
    for line in expected:
        if line == "...":
            reachable = set(range(min(reachable), len(actual) + 1))
            continue
        pattern = line_pattern(line)
        reachable = {i + 1 for i in reachable if i < len(actual) and pattern.match(actual[i])}
        if not reachable:
            return False
    return len(actual) in reachable


def text_lines(text):
    """Lines without the newline at the end of the text."""
    lines = text.split("\n")
    if lines and lines[-1] == "":
        lines.pop()
    return lines
