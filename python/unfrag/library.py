# SPDX-License-Identifier: MIT
"""libunfrag by ctypes: where it is, its functions as far as this package calls them, and its errors
as exceptions. Needs no torch."""

import ctypes
import os


class UnfragError(RuntimeError):
    """What libunfrag or the glue reports: what failed, why, and what to try. status: libunfrag's
    code (unfrag/status.h), None where it has none."""

    status = None


class NoCompiler(UnfragError):
    """What building the glue takes is not on this machine."""


OUT_OF_MEMORY = 40  # UF_ERROR_OUT_OF_MEMORY


class _Error(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("text", ctypes.c_char * 500)]


class Fragmentation(ctypes.Structure):
    """uf_fragmentation of unfrag/stats.h, member by member."""

    _fields_ = [("reserved_bytes", ctypes.c_int64), ("cached_bytes", ctypes.c_int64),
                ("cached_share", ctypes.c_double), ("stuck_bytes", ctypes.c_int64),
                ("stuck_share", ctypes.c_double), ("rounding_bytes", ctypes.c_int64),
                ("rounding_share", ctypes.c_double), ("waiting_bytes", ctypes.c_int64),
                ("largest_request_bytes", ctypes.c_uint64), ("fragmented_bytes", ctypes.c_int64),
                ("fragmented_share", ctypes.c_double), ("alarm_share", ctypes.c_double),
                ("is_alarm", ctypes.c_bool)]


STATS_BYTES = 4096  # room for a uf_stats, which has 122 numbers of 8 bytes

_PACKAGE = os.path.dirname(os.path.abspath(__file__))
_loaded = None


def home():
    """The folder with torch/ (the glue's sources) and include/: a checkout or an installation."""
    above = os.path.dirname(os.path.dirname(_PACKAGE))
    for folder in (os.environ.get("UNFRAG_HOME"), _PACKAGE, above,
                   os.path.join(above, "share", "unfrag")):
        if folder and os.path.exists(os.path.join(folder, "torch", "entry.cpp")):
            return folder
    raise UnfragError(f"the glue's sources (torch/entry.cpp) are not beside {_PACKAGE}: set "
                      "UNFRAG_HOME to unfrag's checkout, or install unfrag again")


def include_folder():
    for folder in (os.path.join(home(), "include"),
                   os.path.join(os.path.dirname(os.path.dirname(home())), "include")):
        if os.path.exists(os.path.join(folder, "unfrag", "unfrag.h")):
            return folder
    raise UnfragError(f"unfrag/unfrag.h is not under {home()}: install unfrag's headers, too")


def path():
    """libunfrag.so, by UNFRAG_LIBRARY, beside the package, in the checkout's build/, or installed."""
    chosen = os.environ.get("UNFRAG_LIBRARY")
    if chosen:
        return chosen
    above = os.path.dirname(os.path.dirname(_PACKAGE))
    prefix = os.path.dirname(os.path.dirname(above))
    folders = [_PACKAGE, os.path.join(above, "build"), os.path.join(prefix, "lib"),
               os.path.join(prefix, "lib64")]
    folders += [os.path.join(prefix, "lib", name) for name in ("x86_64-linux-gnu",
                                                              "aarch64-linux-gnu")]
    for folder in folders:
        for name in ("libunfrag.so.0", "libunfrag.so"):
            if os.path.exists(os.path.join(folder, name)):
                return os.path.join(folder, name)
    return "libunfrag.so.0"  # the dynamic linker may know it


def load():
    """The library, loaded once, with its names visible to the glue."""
    global _loaded
    if _loaded is None:
        where = path()
        try:
            lib = ctypes.CDLL(where, mode=ctypes.RTLD_GLOBAL)
        except OSError as problem:
            raise UnfragError(f"libunfrag cannot be loaded ({problem}): run 'make build' in the "
                              "checkout, or set UNFRAG_LIBRARY to the file") from None
        _declare(lib)
        _loaded = lib
    return _loaded


def _declare(lib):
    error = ctypes.POINTER(_Error)
    u64, handle = ctypes.c_uint64, ctypes.c_void_p
    for name, kinds in {
        "uf_empty_cache": [handle, error],
        "uf_limit_set": [handle, u64, error],
        "uf_reserve": [handle, u64, u64, error],
        "uf_trim": [handle, u64, ctypes.POINTER(u64), error],
        "uf_fraction_set": [handle, ctypes.c_double, error],
        "uf_stats_get": [handle, handle, error],
        "uf_stats_reset_accumulated": [handle, error],
        "uf_stats_reset_peak": [handle, error],
        "uf_walk": [handle, handle, handle, error],
        "uf_check": [handle, error],
        "uf_fragmentation_get": [handle, ctypes.c_double, ctypes.POINTER(Fragmentation), error],
        "uf_fragmentation_compute": [handle, u64, ctypes.c_double,
                                     ctypes.POINTER(Fragmentation), error],
    }.items():
        function = getattr(lib, name)
        function.argtypes, function.restype = kinds, ctypes.c_int
    lib.uf_stats_set.argtypes = [handle, ctypes.c_char_p, ctypes.c_int64]
    lib.uf_stats_set.restype = ctypes.c_bool
    lib.uf_stats_entry.argtypes = [handle, ctypes.c_size_t, ctypes.POINTER(ctypes.c_char_p),
                                   ctypes.POINTER(ctypes.c_int64)]
    lib.uf_stats_entry.restype = ctypes.c_bool


def has(name):
    """Has this libunfrag the function?"""
    return hasattr(load(), name)


def call(name, *arguments):
    """Calls a function that returns a status and takes a uf_error last."""
    error = _Error()
    status = getattr(load(), name)(*arguments, ctypes.byref(error))
    if status != 0:
        problem = UnfragError(error.text.decode("utf-8", "replace"))
        problem.status = status
        raise problem


def stats(allocator):
    """uf_stats_get as a dict, by torch.cuda.memory_stats()'s keys."""
    lib, room = load(), ctypes.create_string_buffer(STATS_BYTES)
    call("uf_stats_get", allocator, room)
    key, value, found = ctypes.c_char_p(), ctypes.c_int64(), {}
    while lib.uf_stats_entry(room, len(found), ctypes.byref(key), ctypes.byref(value)):
        found[key.value.decode()] = value.value
    return found


def trim(allocator, keep_bytes):
    """uf_trim; returns the bytes given back."""
    released = ctypes.c_uint64()
    call("uf_trim", allocator, keep_bytes, ctypes.byref(released))
    return released.value


def fragmentation_of(stats, largest_request_bytes, alarm_share):
    """uf_fragmentation of the numbers of a torch.cuda.memory_stats()."""
    lib = load()
    room = ctypes.create_string_buffer(STATS_BYTES)
    for key, value in stats.items():
        lib.uf_stats_set(room, key.encode(), int(value))
    result = Fragmentation()
    call("uf_fragmentation_compute", room, int(largest_request_bytes), float(alarm_share),
         ctypes.byref(result))
    return result
