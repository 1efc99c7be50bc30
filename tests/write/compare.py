#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""compare.py REWRITE FILE...: each snapshot, rewritten, must be the same to Python.

Loads a recording and what our writer makes of it, by way of .uft and directly, with Python's own
pickle, and compares both objects deeply: types, values, and the order of keys. Two things count as
equal: an event's empty list of frames and none at all, and, in a segment whose list of frames is
empty, the place of that key.
"""
import json
import lzma
import pickle
import pickletools
import subprocess
import sys
import tempfile
from pathlib import Path

# What PyTorch's own recordings are made of; FRAME may come anywhere.
OPCODES = {
    "PROTO", "FRAME", "STOP", "MARK", "EMPTY_DICT", "SETITEMS", "EMPTY_LIST", "APPENDS", "TUPLE2",
    "MEMOIZE", "BINGET", "LONG_BINGET", "BININT1", "BININT2", "BININT", "LONG1", "BINFLOAT",
    "NEWTRUE", "NEWFALSE", "SHORT_BINUNICODE", "BINUNICODE",
}

# json.dumps is slow; the larger recordings hold nothing that the smaller ones lack.
JSON_EVENTS_MAX = 100_000
# Sizes at the edges of the pickle's integer forms.
EDGES = [1, 255, 256, 65535, 65536, 2**31 - 1, 2**31, 2**32, 2**39, 2**40 + 1, 2**55 - 1, 2**55]
# Names of all lengths of string opcodes, and one that is no UTF-8.
NAMES = ["a", "\u00e4\u20ac\U0001f600", "x" * 255, "y" * 256, "z\udcff\udc80"]


def load(path):
    data = path.read_bytes()
    return pickle.loads(lzma.decompress(data) if path.suffix == ".xz" else data)


def keys_of(entry):
    """The keys in order, without those whose presence or place does not count."""
    has_frames = bool(entry.get("frames"))
    return [key for key in entry if key != "frames" or has_frames]


def difference(a, b, path):
    """The first difference as text, or None."""
    if type(a) is not type(b):
        return f"{path}: {type(a).__name__} {a!r:.80} and {type(b).__name__} {b!r:.80}"
    if isinstance(a, dict):
        if keys_of(a) != keys_of(b):
            return f"{path}: keys {list(a)} and {list(b)}"
        if a == b:
            return None
        return next(filter(None, (difference(a[k], b[k], f"{path}[{k!r}]") for k in keys_of(a))),
                    None)
    if isinstance(a, (list, tuple)):
        if len(a) != len(b):
            return f"{path}: {len(a)} and {len(b)} items"
        for i, (x, y) in enumerate(zip(a, b)):
            found = difference(x, y, f"{path}[{i}]")
            if found:
                return found
        return None
    return None if a == b else f"{path}: {a!r:.80} and {b!r:.80}"


def rewrite(program, form, source, target):
    subprocess.run([program, form, str(source), str(target)], check=True)
    return target



def check(program, source, folder):
    """What is wrong with a recording, or None."""
    original = load(source)
    uft = rewrite(program, "uft", source, folder / "a.uft")
    ways = [("directly", source), ("by way of .uft", uft)]
    if sum(map(len, original["device_traces"])) <= JSON_EVENTS_MAX:
        json_file = folder / "a.json"
        json_file.write_text(json.dumps(original))
        ways.append(("by way of JSON", json_file))
    for step, origin in ways:
        target = rewrite(program, "pickle", origin, folder / "a.pickle")
        found = difference(original, load(target), "snapshot")
        if found:
            return f"{source.name}, {step}: {found}"
    strange = {op.name for op, _, _ in pickletools.genops(target.read_bytes())} - OPCODES
    if strange:
        return f"{source.name}: opcodes {sorted(strange)}"
    return None


def check_script(program, folder):
    """The same for a script, of which it is known what the snapshot must be."""
    script, events, addr = b"", [], 0x7F0000000000
    for number, size in enumerate(EDGES):
        name = f"{NAMES[number % len(NAMES)]}{number}"
        script += b"alloc %s %d\n" % (name.encode("utf-8", "surrogateescape"), size)
        events.append({"action": "alloc", "addr": addr, "size": size, "stream": 0,
                       "user_metadata": name})
        addr += -(-size // 512) * 512
    expected = {"segments": [], "device_traces": [events], "external_annotations": []}
    source = folder / "a.txt"
    source.write_bytes(script)
    found = difference(expected, load(rewrite(program, "pickle", source, folder / "a.pickle")),
                       "snapshot")
    return f"script: {found}" if found else None


def main():
    program, files = sys.argv[1], [Path(name) for name in sys.argv[2:]]
    if not files:
        sys.exit("compare.py: no recordings given")
    with tempfile.TemporaryDirectory() as folder:
        results = [check(program, file, Path(folder)) for file in files]
        results.append(check_script(program, Path(folder)))
    failed = [result for result in results if result]
    print("\n".join(failed + [f"{len(results) - len(failed)} of {len(results)} traces are the same "
                              "to Python"]))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
