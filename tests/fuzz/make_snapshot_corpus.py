#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""make_snapshot_corpus.py: writes corpus/snapshot/, small snapshots and bad inputs of every class.

The files are committed; run this only to add some. Needs the zstd command for one of them.
"""
import gzip
import lzma
import pickle
import random
import struct
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "trace"))
from compare_with_python import Writer, make_snapshot, old_layout  # noqa: E402


def small(**options):
    """A snapshot with every key in use, of a few KB."""
    snapshot = make_snapshot(random.Random(7), events=5, **options)
    snapshot["segments"] = snapshot["segments"][:2]
    snapshot["external_annotations"] = snapshot["external_annotations"][:2]
    for segment in snapshot["segments"]:
        segment["blocks"] = segment["blocks"][:2]
    for trace in snapshot["device_traces"]:
        for event in trace:
            if "frames" in event:
                event["frames"] = event["frames"][:2]
    return snapshot


def files():
    good = small(pool_ids=True)
    data = pickle.dumps(good, 4)
    for protocol in range(6):
        yield f"protocol-{protocol}", pickle.dumps(good, protocol)
    yield "gz", gzip.compress(data, mtime=0)
    yield "xz", lzma.compress(data)
    yield "zst", subprocess.run(["zstd", "-q", "-c"], input=data, capture_output=True,
                                check=True).stdout
    yield "gz-cut", gzip.compress(data, mtime=0)[:200]
    yield "gz-members", gzip.compress(data[:99], mtime=0) + gzip.compress(data[99:], mtime=0)
    yield "two-devices", pickle.dumps(small(devices=2), 4)
    yield "layout-2.0", pickle.dumps(old_layout(small(), random.Random(1)), 4)
    yield "bare-list", pickle.dumps(good["segments"], 4)
    yield "empty", pickle.dumps({"segments": [], "device_traces": []}, 4)
    yield "empty-devices", pickle.dumps({"segments": [], "device_traces": [[], [], []]}, 2)
    for name, options in {"item-by-item": {"by_item": True, "memo": "memoize"},
                          "sparse-memo": {"memo": "sparse"}, "put-again": {"memo": "put"},
                          "wide-integers": {"integer_bytes": 16, "long4": True},
                          "repeated-keys": {"repeat": True},
                          "text-item-by-item": {"old": True, "by_item": True}}.items():
        yield name, Writer(**options).write({"segments": good["segments"][:1],
                                             "device_traces": [good["device_traces"][0][:3]]})
    shared = small()
    shared["device_traces"].append(shared["device_traces"][0][::-1])
    yield "shared-events", pickle.dumps(shared, 4)
    extra = small()
    extra["more"] = [b"b", {1}, frozenset(), (1,), (1, 2, 3), 2**70, -2**200, 1.5, None]
    yield "every-kind", pickle.dumps({"more": extra["more"], "segments": []}, 5)
    yield "cut", data[:700]
    yield "zero-bytes", b""
    yield "all-zero", bytes(600)
    yield "text", b"Hello, World\n"
    yield "trailing", pickle.dumps({"segments": []}, 4) + b"more"
    yield "number", pickle.dumps(5, 4)
    yield "other-dict", pickle.dumps({"a": 1}, 4)
    yield "other-list", pickle.dumps([1, 2], 4)
    yield "refused-global", b"\x80\x02cos\nsystem\nX\x02\x00\x00\x00id\x85R."
    yield "refused-stack-global", b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x02id\x85R."
    yield "refused-build", b"\x80\x02}}b."
    yield "refused-persid", b"\x80\x02P1\n."
    yield "refused-buffer", b"\x80\x05\x97."
    yield "bomb-nesting", b"\x80\x02" + b"]" * 1000 + b"a" * 999 + b"."
    yield "bomb-marks", b"\x80\x02" + b"(" * 2000
    yield "bomb-sharing", b"\x80\x02]" + b"q\x000](h\x00h\x00e" * 60 + b"."
    yield "bomb-memo", b"\x80\x02]r\xfe\xff\xff\x7f]r\xfe\xff\xff\xfe\x86."
    yield "huge-string", b"\x80\x04X\xff\xff\xff\x0fabc."
    yield "huge-bytes", b"\x80\x04\x8e" + struct.pack("<Q", 2**62) + b"abc."
    yield "huge-long", b"\x80\x04\x8b\xff\xff\xff\x7fabc."
    yield "underflow", b"\x80\x02]Na0000."
    yield "no-mark", b"\x80\x02]Ne."
    yield "left-over", b"\x80\x02]]."
    yield "self-list", b"\x80\x02]q\x00h\x00a."
    yield "self-dict", b"\x80\x02}q\x00X\x08\x00\x00\x00segmentsh\x00s."
    bad = small()
    bad["device_traces"][0][3]["size"] = -1
    yield "negative-size", pickle.dumps(bad, 4)
    bad["device_traces"][0][3]["size"] = 2**64
    yield "huge-size", pickle.dumps(bad, 4)
    del bad["device_traces"][0][3]["size"]
    yield "no-size", pickle.dumps(bad, 4)


def main():
    folder = HERE / "corpus" / "snapshot"
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files():
        assert len(data) < 4096, f"{name} has {len(data)} bytes"
        (folder / name).write_bytes(data)


if __name__ == "__main__":
    main()
