#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""compare_with_python.py TRACE_DUMP [FILE...]: our reader against Python's own pickle.

Without files, writes snapshots of many shapes (protocols, compressions, layouts of all releases,
odd but valid encodings) to a temporary folder and compares, value by value, what trace_dump read
with what Python's pickle holds. With files (plain or .xz), does the same for them.
"""
import gzip
import io
import json
import lzma
import os
import pickle
import random
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

ACTIONS = ("alloc", "free_requested", "free_completed", "segment_alloc", "segment_free",
           "segment_map", "segment_unmap", "snapshot", "oom")
STATES = {"active_allocated": 0, "active_pending_free": 1, "active_awaiting_free": 1, "inactive": 2}
EVENT_KEYS = {"action", "addr", "size", "stream", "time_us", "compile_context", "user_metadata",
              "frames", "device_free", "pool_id"}
FLAGS = ("expandable_segments", "release_lock_on_cudamalloc", "pinned_use_cuda_host_register",
         "graph_capture_record_stream_reuse")


def raw(text):
    """A string as trace_dump prints it: its UTF-8 bytes as Latin-1."""
    if not isinstance(text, str):
        return None
    return text.encode("utf-8", "surrogatepass").decode("latin-1")


def stack_of(frames):
    if not frames:
        return None
    return [[raw(f["filename"]), f.get("line", 0), raw(f.get("name"))] for f in frames]


def event_of(e):
    addr = e.get("addr", 0)
    if e["action"] == "oom" and e.get("device_free") is not None:
        addr = e["device_free"]
    pool = e.get("pool_id")
    return [raw(e["action"]), addr, e.get("size", 0), e.get("time_us"),
            (e.get("stream") or 0) % 2**64, raw(e.get("compile_context")),
            raw(e.get("user_metadata")), list(pool) if pool is not None else None,
            stack_of(e.get("frames")), 0]


def blocks_of(segment):
    at = segment["address"]
    result = []
    for b in segment.get("blocks", ()):
        addr = b.get("address", at)
        history = b.get("history") or []
        requested = b.get("requested_size")
        if requested is None and history:
            requested = history[0].get("real_size")
        frames = b.get("frames") or (history and history[0].get("frames"))
        result.append([addr, b["size"], int(requested is not None), requested or 0,
                       STATES.get(b["state"], 3), stack_of(frames), 0])
        at = addr + b["size"]
    return result


def segment_of(s):
    pool = s.get("segment_pool_id")
    result = {key: s.get(key, 0)
              for key in ("device", "address", "total_size", "allocated_size", "active_size")}
    if s.get("requested_size") is not None:
        result["requested_size"] = s["requested_size"]
    result.update(stream=s.get("stream", 0) % 2**64, is_large=int(s.get("segment_type") == "large"),
                  is_expandable=int(bool(s.get("is_expandable"))),
                  pool=list(pool) if pool is not None else None,
                  stack=stack_of(s.get("frames")), blocks=blocks_of(s))
    return result


def settings_of(settings):
    if settings is None:
        return None
    result = {"conf": raw(settings.get("PYTORCH_CUDA_ALLOC_CONF"))}
    for key in ("max_split_size", "garbage_collection_threshold", "pinned_num_register_threads"):
        if key in settings:
            result[key] = settings[key]
    for key in FLAGS:
        if key in settings:
            result[key] = int(settings[key])
    if "roundup_power2_divisions" in settings:
        given = settings["roundup_power2_divisions"]
        result["roundup_power2_divisions"] = {
            str(1 << i): given.get(str(1 << i), given.get(1 << i, 0)) for i in range(16)}
    return result


def expected(snapshot):
    """What the reader must see in a snapshot that Python has loaded."""
    if isinstance(snapshot, list):
        snapshot = {"segments": snapshot}
    traces = snapshot.get("device_traces")
    return {
        "has_device_traces": int(traces is not None),
        "devices": [[i, [event_of(e) for e in t]] for i, t in enumerate(traces or [])],
        "segments": [segment_of(s) for s in snapshot.get("segments") or []],
        "settings": settings_of(snapshot.get("allocator_settings")),
        "annotations": [[raw(a["stage"]), raw(a["name"]), a.get("device", 0), a.get("time_us")]
                        for a in snapshot.get("external_annotations") or []],
    }


def seen(dump):
    """The same form from trace_dump's output, with stacks spelled out."""
    frames = dump["frames"]
    stacks = [[frames[i] for i in stack] for stack in dump["stacks"]]

    def spell(entry, at):
        if entry[at] is not None:
            entry[at] = stacks[entry[at]]

    for _, events in dump["devices"]:
        for event in events:
            spell(event, 8)
    for segment in dump["segments"]:
        spell(segment, "stack")
        for block in segment["blocks"]:
            spell(block, 5)
    return {key: dump[key]
            for key in ("has_device_traces", "devices", "segments", "settings", "annotations")}


def difference(a, b, path="snapshot"):
    """The first difference as text, or None."""
    if a == b:
        return None
    if isinstance(a, dict) and isinstance(b, dict):
        if set(a) != set(b):
            return f"{path}: keys {sorted(a)} and {sorted(b)}"
        return next(filter(None, (difference(a[k], b[k], f"{path}[{k!r}]") for k in a)), None)
    if isinstance(a, list) and isinstance(b, list):
        if len(a) != len(b):
            return f"{path}: {len(a)} and {len(b)} items"
        return next(filter(None, (difference(x, y, f"{path}[{i}]")
                                  for i, (x, y) in enumerate(zip(a, b)))), None)
    return f"{path}: Python has {a!r:.100}, the reader {b!r:.100}"


class Checker:
    def __init__(self, program, folder):
        self.program = program
        self.folder = Path(folder)
        self.count = 0
        self.failures = []

    def run(self, path):
        return subprocess.run([self.program, str(path)], capture_output=True, timeout=600)

    def compare(self, name, path, snapshot, oddities=None):
        self.count += 1
        result = self.run(path)
        if result.returncode != 0:
            self.failures.append(f"{name}: {result.stderr.decode(errors='replace').strip()}")
            return
        dump = json.loads(result.stdout)
        found = difference(expected(snapshot), seen(dump))
        for key, value in (oddities or {}).items():
            if found is None and dump["oddities"][key] != value:
                found = f"oddities[{key!r}] is {dump['oddities'][key]!r}, not {value!r}"
        if found:
            self.failures.append(f"{name}: {found}")

    def check(self, name, data, oddities=None, plain=None):
        """data: a pickle, perhaps compressed; plain: the same before compression."""
        path = self.folder / "case"
        path.write_bytes(data)
        self.compare(name, path, pickle.loads(plain or data), oddities)

    def refuse(self, name, data, *words):
        self.count += 1
        path = self.folder / "case"
        path.write_bytes(data)
        result = self.run(path)
        text = result.stderr.decode(errors="replace")
        if result.returncode != 3 or not text.startswith("UF_ERROR_BAD_INPUT "):
            self.failures.append(f"{name}: not refused: exit {result.returncode} {text!r:.200}")
        for word in words:
            if word not in text:
                self.failures.append(f"{name}: {word!r} is not in the message: {text!r:.300}")


def frame(i):
    return {"name": f"function_{i}", "filename": f"C:\\x\\\u00e4 {i % 7}.py", "line": i * 3}


def make_snapshot(rng, devices=1, events=300, pool_ids=False, metadata=True):
    """A snapshot in the 2.11 layout with every key in use; the history need not make sense."""
    stacks = [[frame(rng.randrange(20)) for _ in range(rng.randrange(9))] for _ in range(12)]
    traces = []
    for device in range(devices):
        trace = []
        for i in range(events if device != 0 or devices == 1 else 0):
            e = {"action": rng.choice(ACTIONS), "addr": rng.randrange(2**48) & ~511,
                 "size": rng.choice((0, 1, 255, 256, 65535, 65536, 2**31 - 1, 2**31, 2**40)),
                 "stream": rng.choice((0, 0, 0, 497504240, 94000000000000)),
                 "time_us": 1796066357964811 + i}
            if e["action"] == "oom":
                e = {"device_free": e.pop("addr"), **e}
            if metadata:
                e["compile_context"] = "".join(("N/", "A")) if i % 9 else "0/1"
                e["user_metadata"] = rng.choice(("", "step", "\u20ac\U0001f600"))
            if pool_ids:
                e["pool_id"] = rng.choice(((0, 0), (0, 3), (2**40, 1)))
            if rng.random() < 0.3:
                e["frames"] = rng.choice(stacks)
            trace.append(e)
        traces.append(trace)
    segments = []
    for i in range(20):
        at, blocks = (i + 1) << 32, []
        for _ in range(rng.randrange(1, 9)):
            blocks.append({"address": at, "size": 512 * rng.randrange(1, 5000),
                           "requested_size": rng.randrange(2**33),
                           "state": rng.choice(list(STATES)), "frames": rng.choice(stacks)})
            at += blocks[-1]["size"]
        segments.append({
            "device": i * devices // 20, "address": (i + 1) << 32, "total_size": at - ((i + 1) << 32),
            "allocated_size": 512, "active_size": 1024, "requested_size": 77, "stream": 0,
            "segment_type": rng.choice(("small", "large")), "segment_pool_id": (0, i % 3),
            "is_expandable": bool(i % 2), "frames": [], "blocks": blocks})
    return {
        "segments": segments, "device_traces": traces,
        "allocator_settings": {
            "PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:128", "max_split_size": 134217728,
            "garbage_collection_threshold": 0.8, "expandable_segments": False,
            "pinned_num_register_threads": 1, "release_lock_on_cudamalloc": False,
            "pinned_use_cuda_host_register": True, "graph_capture_record_stream_reuse": False,
            "roundup_power2_divisions": {str(1 << i): i for i in range(16)}},
        "external_annotations": [
            {"stage": s, "name": f"step {i}", "device": 0, "time_us": 1796066357964811 + i}
            for i in range(5) for s in ("START", "END")],
    }


def shuffled(value, rng):
    """The same with the keys of each dictionary in another order."""
    if isinstance(value, dict):
        keys = list(value)
        rng.shuffle(keys)
        return {k: shuffled(value[k], rng) for k in keys}
    if isinstance(value, (list, tuple)):
        return type(value)(shuffled(v, rng) for v in value)
    return value


class Writer:
    """A pickler for plain data with other choices than Python's: no sharing, one item at a time,
    wide integers, long forms, one batch for everything."""

    def __init__(self, integer_bytes=0, by_item=False, memo=None, long4=False, old=False,
                 repeat=False):
        self.out = io.BytesIO()
        self.integer_bytes, self.by_item, self.memo = integer_bytes, by_item, memo
        self.long4, self.old, self.repeat = long4, old, repeat
        self.memo_count = 0

    def memoize(self):
        if self.memo == "memoize":
            self.out.write(b"\x94")
        elif self.memo == "sparse":
            self.out.write(b"r" + struct.pack("<I", self.memo_count * 70001 % 2**31))
        elif self.memo == "put":
            self.out.write(b"q" + bytes([self.memo_count % 256]))
        self.memo_count += 1

    def integer(self, value):
        if self.integer_bytes:
            data = value.to_bytes(self.integer_bytes, "little", signed=True)
            head = b"\x8b" + struct.pack("<i", len(data)) if self.long4 else \
                b"\x8a" + bytes([len(data)])
            self.out.write(head + data)
        elif self.old:
            self.out.write(b"L%dL\n" % value if abs(value) > 2**31 else b"I%d\n" % value)
        else:
            data = pickle.dumps(value, 2)
            self.out.write(data[2:-1])

    def string(self, value):
        data = value.encode("utf-8", "surrogatepass")
        if self.old:
            text = value.replace("\\", "\\u005c").replace("\n", "\\u000a")
            self.out.write(b"V" + text.encode("raw-unicode-escape") + b"\n")
        elif self.long4:
            self.out.write(b"\x8d" + struct.pack("<Q", len(data)) + data)
        else:
            self.out.write(b"X" + struct.pack("<I", len(data)) + data)
        self.memoize()

    def items(self, values, one, many):
        if self.by_item:
            for value in values:
                for part in value:
                    self.value(part)
                self.out.write(one)
            return
        self.out.write(b"(")
        for value in values:
            for part in value:
                self.value(part)
        self.out.write(many)

    def value(self, value):
        if value is None:
            self.out.write(b"N")
        elif isinstance(value, bool):
            self.out.write((b"I01\n" if value else b"I00\n") if self.old else
                           (b"\x88" if value else b"\x89"))
        elif isinstance(value, int):
            self.integer(value)
        elif isinstance(value, float):
            self.out.write(b"F%r\n" % value if self.old else b"G" + struct.pack(">d", value))
        elif isinstance(value, str):
            self.string(value)
        elif isinstance(value, tuple):
            self.out.write(b"(")
            for item in value:
                self.value(item)
            self.out.write(b"t")
        elif isinstance(value, dict):
            self.out.write(b"(d" if self.old else b"}")
            self.memoize()
            pairs = list(value.items())
            if self.repeat and pairs:
                pairs = [(pairs[-1][0], None), (pairs[0][0], "wrong")] + pairs
            self.items(pairs, b"s", b"u")
        else:
            self.out.write(b"(l" if self.old else b"]")
            self.memoize()
            self.items([(item,) for item in value], b"a", b"e")

    def write(self, value):
        self.value(value)
        return b"\x80\x02" * (not self.old) + self.out.getvalue() + b"."


def old_layout(snapshot, rng):
    """The 2.0 layout: blocks without address and requested size, with a history."""
    segments = []
    for s in snapshot["segments"]:
        s = {k: v for k, v in s.items()
             if k not in ("requested_size", "segment_pool_id", "is_expandable", "frames")}
        s["blocks"] = [{"size": b["size"], "state": b["state"],
                        "history": [{"addr": b["address"], "real_size": b["size"] - i,
                                     "frames": b["frames"]} for i in range(rng.randrange(4))]}
                       for b in s["blocks"]]
        segments.append(s)
    return {"segments": segments, "device_traces": snapshot["device_traces"]}


def check_protocols(checker, rng):
    snapshot = make_snapshot(rng)
    for protocol in range(6):
        checker.check(f"protocol {protocol}", pickle.dumps(snapshot, protocol))
    data = pickle.dumps(snapshot, 4)
    checker.check("gz", gzip.compress(data), plain=data)
    half = len(data) // 2
    checker.check("gz of two members", gzip.compress(data[:half]) + gzip.compress(data[half:]),
                  plain=data)
    checker.check("gz with padding", gzip.compress(data) + bytes(512), plain=data)
    checker.check("xz", lzma.compress(data), plain=data)
    checker.check("xz of two streams", lzma.compress(data[:half]) + lzma.compress(data[half:]),
                  plain=data)
    if shutil.which("zstd"):
        def zst(part, *options):
            return subprocess.run(["zstd", "-q", "-c", *options], input=part, check=True,
                                  capture_output=True).stdout
        checker.check("zst", zst(data), plain=data)
        checker.check("zst of two frames", zst(data[:half]) + zst(data[half:]), plain=data)
        skippable = struct.pack("<II", 0x184D2A50, 3) + b"abc"
        checker.check("zst with a skippable frame", skippable + zst(data), plain=data)
        checker.refuse("zst cut short", zst(data)[:-9], "ends early")
    checker.refuse("gz cut short", gzip.compress(data)[:-9], "gz data ends early")
    checker.refuse("xz cut short", lzma.compress(data)[:-9], "xz data ends early")
    damaged = bytearray(gzip.compress(data))
    damaged[len(damaged) // 2] ^= 0x55
    checker.refuse("gz damaged", bytes(damaged), "byte")
    checker.refuse("gz with something behind", gzip.compress(data) + b"garbage", "follows")


def check_encodings(checker, rng):
    snapshot = make_snapshot(rng, pool_ids=True)
    for name, options in {
            "one batch": {}, "memo after each container": {"memo": "memoize"},
            "sparse memo": {"memo": "sparse"}, "memo overwritten": {"memo": "put"},
            "item by item": {"by_item": True},
            "item by item with memo": {"by_item": True, "memo": "memoize"},
            "8-byte integers": {"integer_bytes": 8}, "9-byte integers": {"integer_bytes": 9},
            "16-byte integers": {"integer_bytes": 16},
            "LONG4 and BINUNICODE8": {"integer_bytes": 12, "long4": True},
            "text opcodes": {"old": True}, "text opcodes item by item": {"old": True, "by_item": True},
            "repeated keys": {"repeat": True},
            "repeated keys item by item": {"repeat": True, "by_item": True}}.items():
        checker.check(name, Writer(**options).write(snapshot))
    for i in range(5):
        checker.check(f"keys shuffled {i}", pickle.dumps(shuffled(snapshot, rng), 2 + i % 4))
    shared = make_snapshot(rng)
    shared["device_traces"].append(shared["device_traces"][0])
    checker.check("one event list on two devices", pickle.dumps(shared, 4))
    shared["device_traces"][1] = list(reversed(shared["device_traces"][0]))
    shared["segments"][1:3] = [shared["segments"][0]] * 2
    checker.check("shared events in another order", pickle.dumps(shared, 4))
    flat = json.loads(json.dumps(make_snapshot(rng, pool_ids=True)))
    checker.check("tuples turned into lists", pickle.dumps(flat, 4))
    many = make_snapshot(rng, events=5000)
    checker.check("5000 events", pickle.dumps(many, 5))
    many["device_traces"][0][0].update({f"key {i}": i for i in range(2500)})
    checker.check("an event of 2500 keys", pickle.dumps(many, 4),
                  {"unknown_key": 2500, "first_unknown_key": "key 0"})


def check_layouts(checker, rng):
    snapshot = make_snapshot(rng)
    checker.check("2.0 layout", pickle.dumps(old_layout(snapshot, rng), 4))
    checker.check("bare list of segments", pickle.dumps(snapshot["segments"], 4))
    checker.check("segments only", pickle.dumps({"segments": snapshot["segments"]}, 4))
    checker.check("events only", pickle.dumps({"device_traces": snapshot["device_traces"]}, 4))
    checker.check("no metadata", pickle.dumps(make_snapshot(rng, metadata=False), 4))
    checker.check("four devices", pickle.dumps(make_snapshot(rng, devices=4), 4))
    for empty in ({"segments": [], "device_traces": []}, {"segments": [], "device_traces": [[], []]},
                  {"segments": []}, {"device_traces": None, "segments": []}):
        checker.check(f"empty {empty}", pickle.dumps(empty, 4))
    newer = make_snapshot(rng, pool_ids=True)
    newer.update(trace_alloc_max_entries=100, trace_alloc_overflowed=False)
    for e in newer["device_traces"][0]:
        e["forward_frames"] = ["a", "b"]
    checker.check("newer keys", pickle.dumps(newer, 4), {"unknown_key": 302})
    newer["device_traces"][0].append({"action": "user_defined", "size": 1, "addr": 2, "stream": 3})
    newer["device_traces"][0].append({"action": "annotate"})
    newer["device_traces"][0].append({"action": "snapshot", "size": 1, "stream": 0})
    checker.check("unknown actions", pickle.dumps(newer, 4), {"unknown_action": 2})
    odd = make_snapshot(rng)
    for key, value in (("addr", 2**64 - 1), ("stream", 2**63 + 5), ("size", 2**60 - 1),
                       ("time_us", -5), ("time_us", None), ("stream", -1), ("addr", 2**59)):
        odd["device_traces"][0].append({"action": "alloc", "addr": 512, "size": 1, "stream": 0,
                                        "time_us": 1, key: value})
    odd["segments"][0]["stream"] = 2**64 - 1
    odd["segments"][1]["segment_pool_id"] = (2**63, 2**40)
    odd["allocator_settings"]["garbage_collection_threshold"] = 1
    odd["allocator_settings"]["max_split_size"] = -1
    odd["external_annotations"].append({"stage": "a\0b", "name": "x" * 100000})
    checker.check("extreme numbers and strings", pickle.dumps(odd, 4))
    extra = make_snapshot(rng)
    extra["more"] = [b"bytes", bytearray(b"x" * 300), {1, 2}, frozenset((3,)), (1,), (1, 2, 3), 2**200,
                     -2**127, 1.5, None, {(1, 2): {}}, "y" * 300000]
    checker.check("plain data of every kind", pickle.dumps(extra, 5), {"unknown_key": 1})


def check_refusals(checker, rng):
    class Evil:
        def __reduce__(self):
            return os.system, ("echo executed",)

    snapshot = make_snapshot(rng, events=20)
    for protocol in (0, 2, 4, 5):
        checker.refuse(f"a call, protocol {protocol}", pickle.dumps([snapshot, Evil()], protocol),
                       "GLOBAL" if protocol < 4 else "STACK_GLOBAL", "byte ")
    for value in (1, "text", None, [], [1], {}, {"a": 1}, [[]], (1, 2), 2.5, True):
        checker.refuse(f"the value {value!r}", pickle.dumps(value, 4), "but not a snapshot")
    data = pickle.dumps(snapshot, 4)
    for cut in sorted({1, 2, 3, 11, *(rng.randrange(len(data)) for _ in range(40)), len(data) - 1}):
        checker.refuse(f"cut at {cut}", data[:cut], "early")
    checker.refuse("something behind", data + b"N.", "more data follows")
    for key, value in (("size", -1), ("size", 2**60), ("size", 2**200), ("size", "1"),
                       ("addr", -1), ("addr", 2**64), ("time_us", 2**63), ("stream", 1.5),
                       ("action", 5), ("pool_id", 3), ("frames", 7)):
        bad = make_snapshot(rng, events=30)
        bad["device_traces"][0][17] = {"action": "alloc", "addr": 0, "size": 1, "stream": 0,
                                       key: value}
        checker.refuse(f"{key} {value!r:.20}", pickle.dumps(bad, 4),
                       "event 17 " if key != "frames" else "frames")
    for key in ("size", "addr", "action"):
        bad = make_snapshot(rng, events=30)
        bad["device_traces"][0][17] = {"action": "alloc", "addr": 0, "size": 1, "stream": 0}
        del bad["device_traces"][0][17][key]
        checker.refuse(f"no {key}", pickle.dumps(bad, 4), "event 17 ", f"no '{key}'")


def check_files(checker, files):
    for path in files:
        data = Path(path).read_bytes()
        plain = lzma.decompress(data) if path.endswith(".xz") else data
        checker.compare(path, path, pickle.loads(plain), {"unknown_key": 0, "unknown_action": 0})


def main():
    program, files = sys.argv[1], sys.argv[2:]
    with tempfile.TemporaryDirectory() as folder:
        checker = Checker(program, folder)
        if files:
            check_files(checker, files)
        else:
            rng = random.Random(20260101)
            check_protocols(checker, rng)
            check_encodings(checker, rng)
            check_layouts(checker, rng)
            check_refusals(checker, rng)
    for failure in checker.failures:
        print(failure, file=sys.stderr)
    print(f"{checker.count} compared, {len(checker.failures)} failed")
    return 1 if checker.failures or checker.count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
