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


def load(path):
    data = path.read_bytes()
    return pickle.loads(lzma.decompress(data) if path.suffix == ".xz" else data)


def keys_of(entry):
    """The keys in order, without those whose presence or place does not count."""
    has_frames = bool(entry.get("frames"))
    return [key for key in entry if key != "frames" or has_frames]


def difference(a, b, path):
    """The first difference as text, or None. Loops where recursion would be deep: lists."""
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
    original = load(source)
    uft = rewrite(program, "uft", source, folder / "a.uft")
    json_file = folder / "a.json"
    json_file.write_text(json.dumps(original))
    for step, origin in (("directly", source), ("by way of .uft", uft),
                         ("by way of JSON", json_file)):
        target = rewrite(program, "pickle", origin, folder / "a.pickle")
        found = difference(original, load(target), "snapshot")
        if found:
            return f"{source.name}, {step}: {found}"
    strange = {op.name for op, _, _ in pickletools.genops(target.read_bytes())} - OPCODES
    if strange:
        return f"{source.name}: opcodes {sorted(strange)}"
    return None


def main():
    program, files = sys.argv[1], [Path(name) for name in sys.argv[2:]]
    if not files:
        sys.exit("compare.py: no recordings given")
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for file in files:
            found = check(program, file, Path(folder))
            if found:
                print(found)
                failed += 1
    print(f"{len(files) - failed} of {len(files)} recordings are the same to Python")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
