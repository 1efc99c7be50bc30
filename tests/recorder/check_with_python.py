#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Snapshots of a living allocator, judged by Python: check_with_python.py PROGRAM REFERENCE.

PROGRAM is life_snapshot; REFERENCE is a snapshot that PyTorch 2.11 wrote (.pickle.xz). pickle.load
must take ours, and every dictionary must have the keys of PyTorch's, in its order and with its types.
"""

import lzma
import os
import pickle
import subprocess
import sys
import tempfile

CONFS = ["", "expandable_segments:True",
         "max_split_size_mb:32,garbage_collection_threshold:0.7",
         "roundup_power2_divisions:[1:4,>:8]"]


class NoCode(pickle.Unpickler):
    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"a snapshot needs no {module}.{name}")


def shape(value):
    if isinstance(value, dict):
        return [(key, type(item).__name__) for key, item in value.items()]
    return type(value).__name__


def first_of(snapshot, action):
    for event in snapshot["device_traces"][0]:
        if event["action"] == action:
            return event
    return None


def compare_shapes(ours, theirs):
    findings = []
    pairs = [("snapshot", ours, theirs),
             ("settings", ours["allocator_settings"], theirs["allocator_settings"]),
             ("divisions", ours["allocator_settings"]["roundup_power2_divisions"],
              theirs["allocator_settings"]["roundup_power2_divisions"]),
             ("segment", ours["segments"][0], theirs["segments"][0]),
             ("block", ours["segments"][0]["blocks"][0], theirs["segments"][0]["blocks"][0])]
    for action in ("alloc", "free_requested", "free_completed", "segment_alloc", "segment_free"):
        mine, reference = first_of(ours, action), first_of(theirs, action)
        if mine is not None and reference is not None:
            pairs.append((action, mine, reference))
    for name, mine, reference in pairs:
        if shape(mine) != shape(reference):
            findings.append(f"{name}: {shape(mine)}, not {shape(reference)}")
    return findings


def check_sums(snapshot, printed):
    segments = snapshot["segments"]
    findings = []
    sums = [sum(s[key] for s in segments)
            for key in ("total_size", "allocated_size", "active_size", "requested_size")]
    if sums != printed:
        findings.append(f"sums of segments {sums}, statistics {printed}")
    for segment in segments:
        at = segment["address"]
        for block in segment["blocks"]:
            if block["address"] != at:
                findings.append(f"a gap at {at:#x}")
            at += block["size"]
        if at != segment["address"] + segment["total_size"]:
            findings.append(f"segment {segment['address']:#x} is not filled")
    states = {b["state"] for s in segments for b in s["blocks"]}
    if not states <= {"active_allocated", "active_pending_free", "inactive"}:
        findings.append(f"states {states}")
    return findings


def main():
    program, reference = sys.argv[1:3]
    with lzma.open(reference) as stream:
        theirs = pickle.load(stream)
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "snapshot.pickle")
        for seed, conf in enumerate(CONFS):
            done = subprocess.run([program, str(seed + 1), conf, path], text=True, check=True,
                                  stdout=subprocess.PIPE)
            with open(path, "rb") as stream:
                ours = NoCode(stream).load()
            findings = compare_shapes(ours, theirs)
            findings += check_sums(ours, [int(word) for word in done.stdout.split()])
            if ours["allocator_settings"]["PYTORCH_CUDA_ALLOC_CONF"] != conf:
                findings.append("the settings string is not the one given")
            if first_of(ours, "alloc") is None:
                findings.append("no events")
            for finding in findings:
                print(f"{conf or 'defaults'}: {finding}")
            passed += not findings
            failed += bool(findings)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
