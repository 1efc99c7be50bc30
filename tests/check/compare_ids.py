#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the findings in the code with docs/check.md, both ways: ids and severities."""

import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def read(*parts):
    with open(os.path.join(ROOT, *parts), encoding="utf-8") as stream:
        return stream.read()


def main():
    code = dict(re.findall(r'X\(\s*[A-Z_]+,\s*"([a-z-]+)",\s*([A-Z]+)\)',
                           read("src", "advise", "finding.h")))
    page = dict(re.findall(r"^### ([a-z-]+)\n\n(\w+)\.", read("docs", "check.md"), re.M))
    findings = [f"docs/check.md does not explain {name}" for name in code if name not in page]
    findings += [f"docs/check.md explains {name}, which no code finds" for name in page
                 if name not in code]
    findings += [f"docs/check.md calls {name} {page[name]}, the code {code[name]}" for name in code
                 if name in page and page[name].upper() != code[name]]
    for finding in findings:
        print(finding)
    print(f"{len(code)} ids compared")
    return 1 if findings or len(code) < 40 else 0


if __name__ == "__main__":
    sys.exit(main())
