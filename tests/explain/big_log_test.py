#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""big_log_test.py PROGRAM: a message at the end of 32 MiB of log, and in one line of 32 MiB, is
found, in memory that does not grow with the text."""

import json
import resource
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

import texts_test  # noqa: E402

MESSAGE = texts_test.t5().encode()
LINE = b"2024-05-01 10:00:00,123 - INFO - epoch 3 step 17 loss 0.1234 memory fine, shard loaded\n"
BYTES = 32 << 20
MAX_RESIDENT_KIB = 64 << 10


def check(program, name, pieces):
    """pieces: bytes, written one after the other; a piece may be (bytes, times)."""
    with tempfile.NamedTemporaryFile() as file:
        for piece in pieces:
            data, times = piece if isinstance(piece, tuple) else (piece, 1)
            for _ in range(times):
                file.write(data)
        file.flush()
        done = subprocess.run([program, "explain", "--json", file.name], capture_output=True,
                              check=False)
    got = json.loads(done.stdout) if done.returncode == 0 else {}
    if got.get("requested_bytes") != 64 << 20:
        return [f"{name}: exit {done.returncode}, {done.stderr.decode()}, {got.get('form')}"]
    return []


def main(program):
    lines = (LINE * 100, BYTES // len(LINE) // 100)
    findings = check(program, "at the end", [lines, MESSAGE])
    findings += check(program, "in the middle", [lines, MESSAGE, b"\n", lines])
    findings += check(program, "one line", [(LINE[:-1] + b" ", BYTES // len(LINE)), MESSAGE])
    for shift in range(0, 200, 13):
        padding = (LINE * 4000)[:(192 << 10) - 4000 + shift * 21]
        findings += check(program, f"at the window's edge, {shift}", [padding, b"\n", MESSAGE])
    # No child may exceed it; what Python itself holds before exec counts in, too.
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    with open(program, "rb") as stream:
        has_sanitizer = b"__asan_init" in stream.read()
    if peak > MAX_RESIDENT_KIB and not has_sanitizer:
        findings.append(f"takes {peak} KiB")
    for finding in findings:
        print(finding)
    print(f"{len(findings)} findings, {peak} KiB")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
