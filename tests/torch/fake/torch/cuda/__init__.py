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


def _flat(tree, above=""):
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{above}{key}.")
        else:
            yield above + key, value


def memory_stats(device=None):
    import torch
    return dict(_flat(torch._C._cuda_memoryStats(0)))


def memory_allocated(device=None):
    return memory_stats().get("allocated_bytes.all.current", 0)


def max_memory_reserved(device=None):
    return memory_stats().get("reserved_bytes.all.peak", 0)


def memory_snapshot():
    import torch
    return torch._C._cuda_memorySnapshot((0, 0))["segments"]


def memory_reserved(device=None):
    return memory_stats()["reserved_bytes.all.current"]


def get_per_process_memory_fraction(device=None):
    import torch
    return torch._C._cuda_getMemoryFraction(0)


def set_per_process_memory_fraction(fraction, device=None):
    import torch
    init()
    torch._C._cuda_setMemoryFraction(fraction, 0)


def empty_cache():
    import torch
    torch._C._cuda_emptyCache()


def reset_peak_memory_stats(device=None):
    import torch
    torch._C._cuda_resetPeakMemoryStats(0)


def get_allocator_backend():
    import torch
    return torch._lib.fake_name().decode()
