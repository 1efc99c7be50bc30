# SPDX-License-Identifier: MIT
"""torch.cuda of the fake."""

import ctypes
import types

from . import memory  # noqa: F401

_queued = []
_is_initialized = False


def is_initialized():
    return _is_initialized


def _lazy_call(function):
    if _is_initialized:
        function()
    else:
        _queued.append(function)


def init():
    global _is_initialized
    if not _is_initialized:
        import torch
        torch._lib.fake_init()
        _is_initialized = True
        for function in _queued:
            function()


def device_count():
    return 1


def current_device():
    return 0


def current_stream(device=None):
    init()
    return types.SimpleNamespace(cuda_stream=0)


def synchronize(device=None):
    pass


def get_device_properties(device):
    return types.SimpleNamespace(total_memory=8 << 30, name="fake")


def memory_stats(device=None):
    import torch
    numbers = (ctypes.c_int64 * 6)()
    torch._lib.fake_stats(numbers)
    keys = ("allocated_bytes.all.current", "allocated_bytes.all.peak", "reserved_bytes.all.current",
            "reserved_bytes.all.peak", "num_alloc_retries", "num_ooms")
    found = dict(zip(keys, numbers))
    for part in ("active", "requested"):
        found[f"{part}_bytes.all.current"] = found["allocated_bytes.all.current"]
    return found


def memory_reserved(device=None):
    return memory_stats()["reserved_bytes.all.current"]


_fraction = 1.0


def get_per_process_memory_fraction(device=None):
    return _fraction


def set_per_process_memory_fraction(fraction, device=None):
    global _fraction
    import torch
    init()
    _fraction = fraction
    torch._lib.fake_fraction(fraction)


def empty_cache():
    import torch
    torch._lib.fake_empty_cache()


def reset_peak_memory_stats(device=None):
    import torch
    torch._lib.fake_reset_peaks()


def get_allocator_backend():
    import torch
    return torch._lib.fake_name().decode()
