#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An example and its listing: run_example.py PROGRAM SOURCE PAGE.

PAGE must contain the whole SOURCE in a ```c block, and behind it, in a ```text block, what PROGRAM
prints. PROGRAM must end with 0 and print nothing to standard error.
"""

import re
import subprocess
import sys


def main():
    program, source, page = sys.argv[1:4]
    with open(source, encoding="utf-8") as stream:
        code = stream.read()
    with open(page, encoding="utf-8") as stream:
        text = stream.read()
    done = subprocess.run([program], capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL)
    findings = []
    if done.returncode != 0 or done.stderr:
        findings.append(f"{program} ended with {done.returncode}: {done.stderr}")
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", text, re.M | re.S)
    places = [i for i, block in enumerate(blocks) if block == ("c", code)]
    if not places:
        findings.append(f"{page}: no listing equals {source}")
    elif ("text", done.stdout) not in blocks[places[0] + 1:]:
        findings.append(f"{page}: does not show what {program} prints:\n{done.stdout}")
    for finding in findings:
        print(finding)
    print(f"{int(not findings)} passed, {int(bool(findings))} failed")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
