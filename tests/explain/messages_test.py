#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""messages_test.py PROGRAM FOLDER: every row of the tables, in every wrapping, through
`unfrag explain --json`: form, numbers to the byte, causes in agreement with the flags."""

import csv
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

sys.dont_write_bytecode = True

import families  # noqa: E402
from families import size  # noqa: E402

FLAGS = {"F": "fragmentation", "O": "outside_memory", "N": "refused_with_free_memory",
         "I": "too_large_for_card", "S": "host_spill", "C": "simply_full"}


def explain(program, text, *options):
    data = text if isinstance(text, bytes) else text.encode()
    done = subprocess.run([program, "explain", "--json", *options, "-"], input=data,
                          capture_output=True, check=False)
    if done.returncode not in (0, 1):
        return {"failed": done.stderr.decode(errors="replace")}, done.returncode
    return json.loads(done.stdout), done.returncode


def rows(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8") as stream:
        return list(csv.DictReader(stream, delimiter="\t"))


def unallocated(row):
    value = size(row["unallocated_or_reserved_or_cached"])
    if row["form"] in ("T2", "T3", "X0") and value is not None:
        value -= size(row["allocated"])
        return value if value >= 0 else None
    return value


def check_native(row, got):
    problems = []
    if got.get("form") != row["form"]:
        problems.append(f"form {got.get('form')}")
    wanted = {"requested_bytes": size(row["tried_to_allocate"]), "total_bytes": size(row["total"]),
              "free_bytes": size(row["free"]), "allocated_bytes": size(row["allocated"]),
              "unallocated_bytes": unallocated(row)}
    problems += [f"{key} {got.get(key)}, not {value}" for key, value in wanted.items()
                 if got.get(key, "no key") != value]
    causes, flags = got.get("causes", []), row["flags"]
    for flag, cause in FLAGS.items():
        if flag in flags and cause not in causes:
            problems.append(f"{flag} but not {cause}: {causes}")
        if cause in causes and flag not in flags and not set("n?-") & set(flags) \
                and flag in "FOIS":
            problems.append(f"{cause} without {flag}")
    if "n" in flags and not {"refused_with_free_memory", "simply_full"} & set(causes):
        problems.append(f"n but {causes}")
    if causes[:1] == ["fragmentation"] and "F" not in flags:
        problems.append("blames fragmentation first")
    if "?" in flags and "incomplete_message" not in causes:
        problems.append("does not call it incomplete")
    gap = None if None in (wanted["total_bytes"], wanted["free_bytes"], unallocated(row)) else \
        wanted["total_bytes"] - wanted["free_bytes"] - wanted["allocated_bytes"] - unallocated(row)
    if gap is not None and got["derived"]["gap_bytes"] != gap:
        problems.append(f"gap {got['derived']['gap_bytes']}, not {gap}")
    if gap is not None and gap >= 0 and got["outside_bytes"] != gap:
        problems.append(f"outside {got['outside_bytes']}, not {gap}")
    if not got.get("advice"):
        problems.append("no advice")
    return problems


def check_apple(row, got):
    wanted = {"form": "P", "requested_bytes": size(row["tried_to_allocate"]),
              "allocated_bytes": size(row["allocated"]), "outside_bytes": size(row["other"]),
              "allowed_bytes": size(row["max_allowed"]), "free_bytes": None}
    problems = [f"{key} {got.get(key)}" for key, value in wanted.items()
                if got.get(key, "no key") != value]
    return problems + ([] if "limit" in got.get("causes", []) else ["not limit"])


def check_async(row, got):
    wanted = {"form": "A", "requested_bytes": size(row["requested"]), "allowed_bytes": None,
              "allocated_bytes": size(row["allocated"]), "total_bytes": size(row["limit"]),
              "free_bytes": size(row["free"])}
    problems = [f"{key} {got.get(key)}" for key, value in wanted.items()
                if got.get(key, "no key") != value]
    if size(row["allocated"]) > size(row["limit"]) and "host_spill" not in got.get("causes", []):
        problems.append("not host_spill")
    return problems


def jobs(folder):
    for row in rows(folder, "oom-native.tsv"):
        yield row, families.native(row), check_native
    for row in rows(folder, "oom-mps.tsv"):
        yield row, families.apple(row), check_apple
        yield row, families.apple(row, "shared"), check_apple
    for row in rows(folder, "oom-async.tsv"):
        if row["requested"]:
            yield row, families.asynchronous(row), check_async


def main(program, folder):
    work = []
    for row, text, check in jobs(folder):
        for name, wrap in families.WRAPPINGS.items():
            work.append((row, name, wrap(text), check))

    def run(item):
        row, name, text, check = item
        got, code = explain(program, text)
        problems = check(row, got) if "failed" not in got else [got["failed"]]
        if name == "twice" and got.get("count") != 2:
            problems.append(f"count {got.get('count')}")
        if code != 0:
            problems.append(f"exit code {code}")
        return f"{row['id']} {name}: {'; '.join(problems)}" if problems else None

    with ThreadPoolExecutor(2) as pool:
        findings = [line for line in pool.map(run, work) if line]
    for line in findings[:60]:
        print(line)
    print(f"{len(work) - len(findings)} of {len(work)} messages right")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
