# SPDX-License-Identifier: MIT
"""GPU memory that does not fragment, under PyTorch.

    import unfrag
    unfrag.enable()        # before the first tensor goes to the GPU
    import torch

Everything PyTorch has for memory goes on working: torch.cuda.memory_stats(), memory_summary(),
memory_snapshot(), _record_memory_history(), empty_cache(), set_per_process_memory_fraction().
Sizes are bytes, unless written as "6GiB" or "90%"."""

from .library import UnfragError

__all__ = ["enable", "is_enabled", "monitor", "stats", "fragmentation", "snapshot", "trim",
           "reserve", "limit", "section", "UnfragError"]
__version__ = "0.1.0"


def _torch():
    import torch
    return torch


def enable(policy=None, limit=None, conf=None, require=None):
    """Puts unfrag's allocator in the place of PyTorch's in this process.

    policy: "unfrag" (default) or "torch", PyTorch's decisions on our core. limit: the most to hold
    from each GPU: bytes, "6GiB", "90%", or a share as a float. conf: settings as in
    PYTORCH_CUDA_ALLOC_CONF, which is the default. require: raise UnfragError if it cannot be active;
    by default that is so under torchrun, and elsewhere there is a warning and PyTorch's own
    allocator stays. What is not given is taken from UNFRAG_POLICY, UNFRAG_LIMIT, UNFRAG_CONF,
    UNFRAG_REQUIRE.

    Call it before CUDA starts. Before `import torch` it takes effect at that import. Returns True if
    it is active, False if it is not (or UNFRAG_DISABLE=1), None if torch is not imported yet.
    Raises ValueError for arguments that are none."""
    import sys
    from . import activate, hook
    options = activate.Options(policy, limit, conf, require)
    if activate.is_disabled():
        return False
    if "torch" in sys.modules:
        return activate.try_install(sys.modules["torch"], options)
    hook.wait_for_torch(lambda torch: activate.try_install(torch, options))
    return None


def is_enabled():
    """Is unfrag's allocator the one that this process uses?"""
    from . import activate
    return activate.is_active()


def describe():
    """One line that says whether it is active, with policy and limit."""
    from . import activate
    return activate.describe()


def monitor():
    """Leaves PyTorch's own allocator in place and publishes its statistics for `unfrag top`."""
    import sys
    from . import hook, watch
    if "torch" in sys.modules:
        watch.begin(sys.modules["torch"])
    else:
        hook.wait_for_torch(watch.begin)


def _device(device):
    torch = _torch()
    if device is None:
        return torch.cuda.current_device()
    if isinstance(device, int):
        return device
    index = torch.device(device).index
    return torch.cuda.current_device() if index is None else index


def stats(device=None):
    """torch.cuda.memory_stats() as a plain dict: bytes and counts by key; {} before CUDA starts."""
    torch = _torch()
    if not torch.cuda.is_initialized():
        return {}
    return dict(torch.cuda.memory_stats(_device(device)))


def fragmentation(device=None, alarm_share=0.30):
    """How fragmented the memory is, as a dict: bytes end in _bytes, shares from 0 to 1 in _share.

    largest_request_bytes is what the cache serves as it is, 0 where that is not known (on PyTorch's
    own allocator). is_alarm: fragmented_share is at least alarm_share. Source: uf_fragmentation in
    unfrag/stats.h. Raises UnfragError for a share outside (0, 1]."""
    import ctypes
    from . import activate, library
    if activate.is_active():
        result = library.Fragmentation()
        library.call("uf_fragmentation_get", activate.allocator(_device(device)),
                     float(alarm_share), ctypes.byref(result))
    else:
        result = library.fragmentation_of(stats(device), 0, alarm_share)
    return {name: getattr(result, name) for name, _ in result._fields_}


def snapshot(path=None):
    """torch.cuda.memory._snapshot(); with a path it is written there, whole or not at all, for
    PyTorch's memory viewer and for unfrag replay, tune, explain and report."""
    memory = _torch().cuda.memory._snapshot()
    if path is not None:
        from .record import write_snapshot
        write_snapshot(memory, path)
    return memory


def trim(keep=0, device=None):
    """Gives cached memory back to the driver until at most `keep` of it is cached (bytes, or as
    "1GiB"). Returns the bytes given back. By uf_trim of unfrag/unfrag.h, which does not wait for
    blocks that other streams still use; on PyTorch's own allocator by empty_cache, which gives all
    back if there is more than that."""
    torch = _torch()
    most = _bytes(keep, "trim")
    if not torch.cuda.is_initialized():
        return 0
    index = _device(device)
    from . import activate, library
    if activate.is_active():
        return library.trim(activate.allocator(index), most)
    before = torch.cuda.memory_reserved(index)
    if before - stats(index).get("allocated_bytes.all.current", 0) > most:
        torch.cuda.empty_cache()
    return before - torch.cuda.memory_reserved(index)


def reserve(size, device=None):
    """Takes memory from the driver ahead of need, so that a first load does not wait for it: so much
    is cached afterwards, in one piece for the current stream. size: bytes, or as "6GiB". By
    uf_reserve of unfrag/unfrag.h; on PyTorch's own allocator by a tensor that is dropped at once.
    Raises torch.OutOfMemoryError."""
    torch = _torch()
    count = _bytes(size, "reserve")
    index = _device(device)
    from . import activate, library
    if not activate.is_active():
        held = torch.empty(count, dtype=torch.uint8, device=f"cuda:{index}")
        del held
        return
    stream = torch.cuda.current_stream(index).cuda_stream  # starts CUDA, if that has to be done
    try:
        library.call("uf_reserve", activate.allocator(index), count, stream)
    except UnfragError as problem:
        if problem.status != library.OUT_OF_MEMORY:
            raise
        raise torch.OutOfMemoryError(f"CUDA out of memory. Tried to reserve {count} bytes on GPU "
                                     f"{index}.\nunfrag: {problem}") from None


def _bytes(size, call):
    from .say import parse_size
    count = parse_size(size) if isinstance(size, str) else size
    if isinstance(count, float) or int(count) < 0:
        raise ValueError(f"{call}: {size!r} is no size: bytes, or as '6GiB'")
    return int(count)


def limit(size, device=None):
    """Sets the most to hold from a GPU: bytes, "6GiB", "90%" or a share as a float; None for none.
    Releases nothing; later requests feel it. Works on PyTorch's own allocator, too."""
    torch = _torch()
    from .say import parse_size
    value = parse_size(size) if isinstance(size, str) else size
    index = _device(device)
    if value is None:
        value = 1.0
    if not isinstance(value, float):
        value = min(1.0, int(value) / torch.cuda.get_device_properties(index).total_memory)
    torch.cuda.set_per_process_memory_fraction(value, index)


class section:  # noqa: N801: reads as a statement
    """with unfrag.section("image 3") as s: says what a block of code did to the memory, and cleans up
    after it: garbage is collected and the cache given back.

    Afterwards s has seconds, peak_bytes and peak_reserved_bytes (of the block alone: PyTorch's peaks
    are reset at its start), kept_bytes (allocated after it less before), retries, and text, the line
    that is printed to stderr unless quiet. cleanup=False keeps the cache."""

    def __init__(self, name="section", device=None, quiet=False, cleanup=True):
        self.name, self.quiet, self.cleanup = name, quiet, cleanup
        self._device = device
        self.seconds = self.peak_bytes = self.peak_reserved_bytes = None
        self.kept_bytes = self.retries = self.text = None

    def __enter__(self):
        import time
        torch = _torch()
        self._index = _device(self._device)
        torch.cuda.reset_peak_memory_stats(self._index)
        self._before = stats(self._index)
        self._start = time.perf_counter()
        return self

    def __exit__(self, kind, value, trace):
        import gc
        import time
        from .say import say, size_text
        torch = _torch()
        if kind is None:
            torch.cuda.synchronize(self._index)
        self.seconds = time.perf_counter() - self._start
        now = stats(self._index)

        def grown(key):
            return now.get(key, 0) - self._before.get(key, 0)

        self.peak_bytes = now.get("allocated_bytes.all.peak", 0)
        self.peak_reserved_bytes = now.get("reserved_bytes.all.peak", 0)
        self.retries = grown("num_alloc_retries")
        if self.cleanup:
            gc.collect()
            torch.cuda.empty_cache()
        after = stats(self._index)
        self.kept_bytes = after.get("allocated_bytes.all.current", 0) - \
            self._before.get("allocated_bytes.all.current", 0)
        self.text = (f"{self.name}: {self.seconds:.2f} s, peak {size_text(self.peak_bytes)}, "
                     f"reserved {size_text(self.peak_reserved_bytes)}, kept "
                     f"{size_text(self.kept_bytes)}, retries {self.retries}")
        if not self.quiet:
            say(self.text)
        return False
