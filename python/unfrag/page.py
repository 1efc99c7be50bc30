# SPDX-License-Identifier: MIT
"""A page in shared memory for `unfrag top`, with the statistics of PyTorch's own allocator. The
layout is that of docs/internals/monitor.md; libunfrag writes the same for its own allocators."""

import atexit
import mmap
import os
import struct
import sys
import threading
import time

PAGE_BYTES = 12288
UNKNOWN = (1 << 64) - 1
UNKNOWN_SIGNED = -(1 << 63)
INTERVAL_SECONDS = 0.25
GROUPS = ("allocation", "segment", "active", "inactive_split", "allocated_bytes", "reserved_bytes",
          "active_bytes", "inactive_split_bytes", "requested_bytes")
POOLS, FIELDS = ("all", "small_pool", "large_pool"), ("current", "peak", "allocated", "freed")
KEYS = [f"{group}.{pool}.{field}" for group in GROUPS for pool in POOLS for field in FIELDS] + \
       [f"{group}.{field}" for group in ("oversize_allocations", "oversize_segments")
        for field in FIELDS] + \
       ["num_alloc_retries", "num_ooms", "max_split_size", "num_sync_all_streams",
        "num_device_alloc", "num_device_free"]


def directory():
    """Where pages are; made if need be, for this user alone."""
    chosen = os.environ.get("UNFRAG_MONITOR_DIR")
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if chosen:
        folder = chosen
    elif os.access("/dev/shm", os.W_OK):
        folder = f"/dev/shm/unfrag-{os.geteuid()}"
    elif runtime.startswith("/"):
        folder = os.path.join(runtime, "unfrag")
    else:
        folder = f"/tmp/unfrag-{os.geteuid()}"
    os.makedirs(folder, mode=0o700, exist_ok=True)
    found = os.lstat(folder)
    if found.st_uid != os.geteuid() or found.st_mode & 0o022 or not os.path.isdir(folder):
        raise OSError(f"{folder} is open to other users")
    return folder


def _text(text, room):
    raw = text.encode("utf-8", "replace")[:room - 1]
    return raw + b"\0" * (room - len(raw))


def _start_ticks():
    try:
        with open("/proc/self/stat", encoding="utf-8", errors="replace") as stream:
            return int(stream.read().rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return 0


def _namespace():
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0


class Page:
    """The page of one GPU. Writes samples when told; the caller has one thread for all."""

    def __init__(self, device, name, total_bytes, conf):
        self.device, self.pid = device, os.getpid()
        self._count, self._sequence, self._history = 0, 0, 0
        self._next = self._noted = 0
        folder = directory()
        for number in range(1024):
            self.path = os.path.join(folder, f"{self.pid}-{number}")
            try:
                handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
                break
            except FileExistsError:
                continue
        else:
            raise OSError(f"{folder} has 1024 pages of this process")
        try:
            os.posix_fallocate(handle, 0, PAGE_BYTES)
            self._map = mmap.mmap(handle, PAGE_BYTES)
        except OSError:
            os.unlink(self.path)
            raise
        finally:
            os.close(handle)
        command = " ".join(getattr(sys, "orig_argv", sys.argv))
        struct.pack_into("=IIQIiQQq", self._map, 8, 1, PAGE_BYTES, 0, self.pid, device,
                         _start_ticks(), _namespace(), time.time_ns())
        for offset, room, text in ((64, 16, "stock"), (128, 64, name), (192, 192, command),
                                   (384, 256, conf)):
            self._map[offset:offset + room] = _text(text, room)
        self._total = total_bytes
        self._map[0:8] = b"unfragPG"

    def write(self, stats, free_bytes, limit_bytes):
        if os.getpid() != self.pid:
            return  # a child's copy: the page is its parent's
        now = time.monotonic_ns()
        self._count += 1
        self._sequence += 1
        struct.pack_into("=Q", self._map, 16, self._sequence)
        struct.pack_into("=qqQqQQQQQQQQQqIIIIII", self._map, 640, now, time.time_ns(), self._count,
                         int(INTERVAL_SECONDS * 1e9), limit_bytes, self._total,
                         UNKNOWN if free_bytes is None else free_bytes, UNKNOWN, UNKNOWN, UNKNOWN,
                         UNKNOWN, UNKNOWN, UNKNOWN, 0, 0, 0, 0, 0, *self._note(now, stats))
        struct.pack_into(f"={len(KEYS)}q", self._map, 832,
                         *(int(stats.get(key, UNKNOWN_SIGNED)) for key in KEYS))
        self._sequence += 1
        struct.pack_into("=Q", self._map, 16, self._sequence)

    def _note(self, now, stats):
        """One entry of the history a second; how many there are, and where the next one goes."""
        if now - self._noted >= 1e9:
            self._noted = now
            struct.pack_into("=qQQQQQ", self._map, 5952 + 48 * self._next, now, *(
                int(stats.get(f"{key}.all.{field}", 0)) for key, field in (
                    ("reserved_bytes", "current"), ("active_bytes", "current"),
                    ("allocated_bytes", "current"), ("requested_bytes", "current"),
                    ("allocation", "allocated"))))
            self._next = (self._next + 1) % 128
            self._history = min(128, self._history + 1)
        return self._history, self._next

    def close(self):
        if os.getpid() == self.pid:
            try:
                os.unlink(self.path)
            except OSError:
                pass


class Watcher:
    """The thread that samples PyTorch's allocator on each GPU that is in use."""

    def __init__(self, torch):
        self._torch, self._pages = torch, {}
        self._stop, self._pid = threading.Event(), os.getpid()

    def start(self):
        """As CUDA starts."""
        thread = threading.Thread(target=self._run, name="unfrag-monitor", daemon=True)
        thread.start()
        atexit.register(self.close)

    def _run(self):
        while not self._stop.wait(INTERVAL_SECONDS):
            try:
                self.sample()
            except Exception:  # noqa: BLE001: a watcher must not disturb its program
                return

    def sample(self):
        torch = self._torch
        for device in range(torch.cuda.device_count()):
            stats = torch.cuda.memory_stats(device)
            page = self._pages.get(device)
            if page is None:
                if not stats.get("reserved_bytes.all.peak"):
                    continue
                properties = torch.cuda.get_device_properties(device)
                conf = os.environ.get("PYTORCH_CUDA_ALLOC_CONF") or \
                    os.environ.get("PYTORCH_ALLOC_CONF") or ""
                page = self._pages[device] = Page(device, properties.name,
                                                  properties.total_memory, conf)
            # What the driver has left is not asked for: that call takes the driver's lock.
            page.write(stats, None, self._limit(device))

    def _limit(self, device):
        try:
            share = self._torch.cuda.get_per_process_memory_fraction(device)
        except (AttributeError, RuntimeError):
            return 0
        total = self._torch.cuda.get_device_properties(device).total_memory
        return 0 if share >= 1 else int(share * total)

    def close(self):
        self._stop.set()
        if os.getpid() == self._pid:
            for page in self._pages.values():
                page.close()
