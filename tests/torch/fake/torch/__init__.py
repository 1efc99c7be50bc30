# SPDX-License-Identifier: MIT
"""A torch for tests: enough of its Python side for unfrag, over the stub of its C++ side."""

import ctypes
import os

from . import version
from .version import __version__

_lib = ctypes.CDLL(os.path.join(os.path.dirname(__file__), "lib", "libc10_cuda.so"))
_lib.fake_alloc.restype = ctypes.c_void_p
_lib.fake_alloc.argtypes = [ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t,
                            ctypes.POINTER(ctypes.c_int)]
_lib.fake_free.argtypes = [ctypes.c_void_p]
_lib.fake_fraction.argtypes = [ctypes.c_double]
_lib.fake_name.restype = ctypes.c_char_p
uint8 = "uint8"


class OutOfMemoryError(RuntimeError):
    pass


class _C:
    _GLIBCXX_USE_CXX11_ABI = True
    _observers = []

    @staticmethod
    def _cuda_attach_out_of_memory_observer(observer):
        call = ctypes.CFUNCTYPE(None)(lambda: observer(0, 0, 0, 0))
        _C._observers.append(call)
        _lib.fake_observe(call)


    # What real PyTorch's own allocator answers; for a pluggable one it raises.
    _fraction = 1.0

    @staticmethod
    def _cuda_memoryStats(device):
        numbers = (ctypes.c_int64 * 6)()
        _lib.fake_stats(numbers)
        now, most, reserved, reserved_most, retries, ooms = numbers
        part = {"all": {"current": now}}
        return {"allocated_bytes": {"all": {"current": now, "peak": most}},
                "reserved_bytes": {"all": {"current": reserved, "peak": reserved_most}},
                "num_alloc_retries": retries, "num_ooms": ooms, "active_bytes": part,
                "requested_bytes": part}

    @staticmethod
    def _cuda_resetPeakMemoryStats(device):
        _lib.fake_reset_peaks()

    @staticmethod
    def _cuda_resetAccumulatedMemoryStats(device):
        pass

    @staticmethod
    def _cuda_emptyCache():
        _lib.fake_empty_cache()

    @staticmethod
    def _cuda_memorySnapshot(pool):
        return {"segments": []}

    @staticmethod
    def _cuda_setMemoryFraction(fraction, device):
        _C._fraction = fraction
        _lib.fake_fraction(fraction)

    @staticmethod
    def _cuda_getMemoryFraction(device):
        return _C._fraction


from . import cuda  # noqa: E402


class Tensor:
    def __init__(self, size):
        text, is_oom = ctypes.create_string_buffer(2000), ctypes.c_int()
        self._pointer = _lib.fake_alloc(size, text, len(text), ctypes.byref(is_oom))
        if size and not self._pointer:
            raise (OutOfMemoryError if is_oom.value else RuntimeError)(text.value.decode())

    def __del__(self):
        if getattr(self, "_pointer", None):
            _lib.fake_free(self._pointer)


def empty(size, dtype=None, device=None):
    cuda.init()
    return Tensor(size)
