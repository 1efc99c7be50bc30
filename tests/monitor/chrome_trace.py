#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reads a snapshot with pickle, reckons its memory over time, and compares that with what `convert`
writes as a Chrome trace and as CSV: chrome_trace.py UNFRAG SNAPSHOT.pickle.xz ..."""

import csv
import io
import json
import lzma
import os
import pickle
import subprocess
import sys
import tempfile

from watched import Checks

LEVELS = ("allocated", "active", "live", "reserved")


def reckon(snapshot, device):
    """Levels before the first event and after each, from the end backwards."""
    events = snapshot["device_traces"][device]
    level = dict.fromkeys(LEVELS, 0)
    for segment in snapshot["segments"]:
        if segment["device"] != device:
            continue
        level["reserved"] += segment["total_size"]
        for block in segment["blocks"]:
            size = block.get("requested_size", block["size"])
            if block["state"] == "active_allocated":
                level["allocated"] += size
            if block["state"] in ("active_allocated", "active_pending_free"):
                level["active"] += size
                level["live"] += -(-size // 512) * 512
    levels = [dict(level)]
    for event in reversed(events):
        action, size = event["action"], event["size"]
        rounded = -(-size // 512) * 512
        if action == "alloc":
            changes = {"allocated": size, "active": size, "live": rounded}
        elif action == "free_requested":
            changes = {"allocated": -size}
        elif action == "free_completed":
            changes = {"active": -size, "live": -rounded}
        elif action in ("segment_alloc", "segment_map"):
            changes = {"reserved": size}
        elif action in ("segment_free", "segment_unmap"):
            changes = {"reserved": -size}
        else:
            changes = {}
        for name, change in changes.items():
            level[name] -= change
        levels.append(dict(level))
    return events, levels[::-1]


def counters(trace, name):
    return [(e["ts"], e["args"]["bytes"]) for e in trace["traceEvents"]
            if e["ph"] == "C" and e["name"] == name]


def check_trace(check, label, trace, events, levels, is_whole):
    start = next((e["time_us"] for e in events if "time_us" in e), None)
    for name in LEVELS:
        shown = counters(trace, name)
        values = [level[name] for level in levels]
        check.that(f"{label}: the peak of {name} is kept", max(v for _, v in shown) == max(values))
        check.that(f"{label}: {name} begins and ends as it should",
                   shown[0][1] == values[0] and shown[-1][1] == values[-1])
        check.that(f"{label}: {name} goes forward in time", shown == sorted(shown, key=lambda p: p[0]))
        if is_whole:
            changed = [values[0]] + [b for a, b in zip(values, values[1:]) if a != b]
            check.that(f"{label}: {name} has every change", [v for _, v in shown] == changed)
        else:
            check.that(f"{label}: {name} is bounded", len(shown) <= 4 * 100 + 2)
    for action in ("oom", "segment_alloc", "segment_free"):
        there = [e for e in trace["traceEvents"] if e["ph"] == "i" and e["name"] == action]
        wanted = [e for e in events if e["action"] == action]
        check.that(f"{label}: each {action} is an instant",
                   [e["args"]["bytes"] for e in there] == [e["size"] for e in wanted]
                   and (start is None or [e["ts"] for e in there] == [e["time_us"] - start for e in wanted]))
    open_ids, is_good = {}, True
    for event in trace["traceEvents"]:
        if event["ph"] == "b":
            is_good = is_good and event["id"] not in open_ids
            open_ids[event["id"]] = event
        elif event["ph"] == "e":
            begun = open_ids.get(event["id"])
            is_good = is_good and begun is not None and begun["ts"] <= event["ts"] \
                and begun["name"] == event["name"]
    check.that(f"{label}: blocks end after they begin", is_good)
    allocs = sorted((e["size"] for e in events if e["action"] == "alloc"), reverse=True)
    shown = sorted((e["args"]["bytes"] for e in open_ids.values()), reverse=True)
    check.that(f"{label}: the largest blocks are shown", shown == allocs[:len(shown)]
               and len(shown) == min(len(allocs), 5000 if is_whole else 10))


def check_csv(check, label, text, events, levels):
    rows = list(csv.DictReader(io.StringIO(text)))
    check.that(f"{label}: the table has a row for each event", len(rows) == len(events))
    check.that(f"{label}: actions, sizes and addresses are those of the snapshot",
               [(r["action"], int(r["size_bytes"]), int(r["address"])) for r in rows]
               == [(e["action"], e["size"], e.get("addr", e.get("device_free"))) for e in events])
    check.that(f"{label}: levels are those reckoned here",
               all(int(row[f"{name}_bytes"]) == level[name]
                   for row, level in zip(rows, levels[1:]) for name in LEVELS))


def main():
    program, paths = sys.argv[1], sys.argv[2:]
    check = Checks()
    with tempfile.TemporaryDirectory() as folder:
        for path in paths:
            label = os.path.basename(path).split(".pickle")[0]
            with lzma.open(path) as stream:
                snapshot = pickle.load(stream)
            device = max(range(len(snapshot["device_traces"])),
                         key=lambda d: len(snapshot["device_traces"][d]))
            events, levels = reckon(snapshot, device)
            for is_whole, options in ((True, ["--points", "0"]), (False, ["--points", "100", "--blocks", "10"])):
                target = os.path.join(folder, "x.perfetto.json")
                subprocess.run([program, "convert", "--force", *options, path, target], check=True,
                               stdout=subprocess.DEVNULL)
                with open(target, encoding="utf-8") as stream:
                    trace = json.load(stream)
                check_trace(check, f"{label} {'whole' if is_whole else 'bounded'}", trace, events, levels, is_whole)
            done = subprocess.run([program, "convert", path, "-", "--to", "csv"], check=True,
                                  capture_output=True, text=True)
            check_csv(check, label, done.stdout, events, levels)
    check.end()


if __name__ == "__main__":
    main()
