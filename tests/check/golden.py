#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Golden tests of `unfrag check`: golden.py PROGRAM [--bless].

- Each file of corpus/ and of ../data/reports/corpus/ against expected/NAME.txt, a line per finding:
  place, severity, id, option; then its fix; and again for other releases, where they find others.
- Each string of ../data/conf-strings.tsv under each release against expected/conf-strings.txt.
- A fix that is a whole settings string must itself be without findings.
"""

import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(os.path.dirname(HERE), "data")
RELEASES = ["1.10", "1.12", "1.13", "2.0", "2.1", "2.9", "2.10", "2.11"]


def check(program, *words):
    done = subprocess.run([program, "check", "--json", *words], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, check=False)
    result = json.loads(done.stdout)
    assert done.returncode == (0 if result["valid"] else 1), (words, done.returncode, done.stderr)
    assert result["valid"] == all(f["severity"] != "error" for f in result["findings"]), words
    return result


def describe(result):
    lines = []
    for finding in result["findings"]:
        cell = f"cell {finding['cell']}:" if "cell" in finding else ""
        lines.append(f"{cell}{finding['line']}: {finding['severity']} {finding['id']}: "
                     f"{finding['option']}")
        if finding["fix"] is not None:
            lines.append(f"    {finding['fix'].strip()}".rstrip() or "    (nothing)")
        assert finding["message"] and not finding["message"].endswith("."), finding
    return lines


def file_text(program, path):
    lines = describe(check(program, path))
    ids = [line for line in lines if not line.startswith("    ")]
    for release in ("2.9", "2.0"):
        other = describe(check(program, "--torch", release, path))
        changed = [line for line in other if not line.startswith("    ")]
        if changed != ids:
            lines += [f"-- {release}"] + changed
    return lines


def strings_text(program):
    lines = []
    with open(os.path.join(DATA, "conf-strings.tsv"), encoding="utf-8") as stream:
        rows = [line.rstrip("\n").split("\t") for line in stream if not line.startswith("#")]
    for name, accepted, text in rows:
        lines.append(f"{name} {text}")
        for release, letter in zip(RELEASES, accepted):
            result = check(program, "--torch", release, text)
            assert result["valid"] == (letter != "x"), (name, release)
            ids = " ".join(finding["id"] for finding in result["findings"])
            fix = result["findings"][0]["fix"] if result["findings"] else None
            lines.append(f"    {release}: {ids or 'good'}" + (f" -> {fix}" if fix else ""))
            for finding in result["findings"]:
                if finding["fix"]:
                    again = check(program, "--torch", release, finding["fix"])
                    assert not again["findings"], (name, release, finding["fix"])
    return lines


def compare(name, lines, is_blessing):
    path = os.path.join(HERE, "expected", name + ".txt")
    text = "\n".join(lines) + "\n"
    wanted = open(path, encoding="utf-8").read() if os.path.exists(path) else ""
    if text == wanted:
        return True
    if is_blessing:
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)
    print(f"{name}: expected\n{wanted}  got\n{text}")
    return False


def main():
    program = os.path.abspath(sys.argv[1])
    is_blessing = "--bless" in sys.argv
    good = [compare("conf-strings", strings_text(program), is_blessing)]
    for folder in (os.path.join(HERE, "corpus"), os.path.join(DATA, "reports", "corpus")):
        for name in sorted(os.listdir(folder)):
            if name != "README.md":
                good.append(compare(name, file_text(program, os.path.join(folder, name)),
                                    is_blessing))
    print(f"{sum(good)} of {len(good)} as expected")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
