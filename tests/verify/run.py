#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Is a bundled recording equal? run.py UNFRAG DATA-FOLDER NAME

Runs `unfrag replay --verify --json` on NAME under the limit that index.tsv gives, and compares the
report with the index: all events equal, all statistics equal (where the recording has its
beginning), and the figures that PyTorch itself counted. Exit status 0 only if all of it holds.
"""

import json
import os
import subprocess
import sys


def read_index(folder, name):
    with open(os.path.join(folder, "index.tsv"), encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    for row in rows[1:]:
        if row[0] == name:
            return dict(zip(rows[0], row))
    sys.exit(f"{name} is not in {folder}/index.tsv")


def main():
    program, folder, name = sys.argv[1:]
    row = read_index(folder, name)
    command = [program, "replay", "--verify", "--json"]
    if row["limit_bytes"] != "none":
        command += ["--limit", row["limit_bytes"]]
    command.append(os.path.join(folder, f"{name}.pickle.xz"))
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"{' '.join(command)} ended with {done.returncode}")
    report = json.loads(done.stdout)
    expected = {
        "events": int(row["events"]),
        "events_equal": int(row["events"]),
        "is_equal": True,
        "first_difference": None,
        "conf": "" if row["conf"] == "(none)" else row["conf"],
    }
    if not report["recording"]["has_lost_beginning"]:
        expected.update({
            "statistics_compared": 122,
            "statistics_equal": 122,
            "peak_active_bytes": int(row["peak_active_bytes"]),
            "peak_reserved_bytes": int(row["peak_reserved_bytes"]),
            "num_alloc_retries": int(row["num_alloc_retries"]),
            "num_ooms": int(row["num_ooms"]),
        })
    wrong = [f"{key} is {report.get(key)!r}, not {value!r}"
             for key, value in expected.items() if report.get(key) != value]
    if done.returncode != 0:
        wrong.append(f"the exit status is {done.returncode}")
    print("\n".join(wrong) or f"{name}: {report['events_equal']} events equal")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
