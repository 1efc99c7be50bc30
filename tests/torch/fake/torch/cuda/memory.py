# SPDX-License-Identifier: MIT
"""torch.cuda.memory of the fake: history as a list of calls."""

history = []


def _record_memory_history(**options):
    history.append(options)


def _snapshot():
    from torch.cuda import memory_stats
    return {"segments": [], "device_traces": [[]], "history": list(history),
            "stats": memory_stats()}


def _set_allocator_settings(env):
    history.append(env)


class CUDAPluggableAllocator:
    """As PyTorch's: what is inside takes addresses of functions."""

    def __init__(self, path, alloc, free):
        import ctypes
        library = ctypes.CDLL(path)
        self.functions = [ctypes.cast(getattr(library, name), ctypes.c_void_p)
                          for name in (alloc, free)]

    def allocator(self):
        return self

    def set_record_stream_fn(self, address):
        self.record_stream = address

    def set_begin_allocate_to_pool(self, address):
        self.begin_pool = address


def change_current_allocator(own):
    import torch
    torch._lib.fake_plain(*own.functions)
    torch.pluggable = own
