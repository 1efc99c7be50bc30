# SPDX-License-Identifier: MIT
"""unfrag's allocator without the glue, where that cannot be compiled: plain functions of
libunfrag_plain.so by way of torch.cuda.memory.CUDAPluggableAllocator. PyTorch has no statistics for
such an allocator: the calls under torch._C that it would refuse are answered here."""

import ctypes
import os

from . import library
from .library import UnfragError

MISSING = ("CUDA graphs, memory pools, torch.compile(mode=\"reduce-overhead\"), memory history, "
           "out-of-memory observers; running out raises RuntimeError instead of "
           "torch.OutOfMemoryError")
_THROW = "_ZN3c106detail14torchCheckFailEPKcS2_jS2_"  # c10::detail::torchCheckFail of four texts

_plain = None
_kept = []  # what PyTorch and libunfrag hold pointers to


class _Block(ctypes.Structure):
    """uf_block_info of unfrag/unfrag.h."""

    _fields_ = [("addr", ctypes.c_uint64), ("size_bytes", ctypes.c_uint64),
                ("requested_bytes", ctypes.c_uint64), ("state", ctypes.c_int)]


class _Segment(ctypes.Structure):
    """uf_segment_info of unfrag/unfrag.h."""

    _fields_ = [("addr", ctypes.c_uint64), ("total_bytes", ctypes.c_uint64),
                ("allocated_bytes", ctypes.c_uint64), ("active_bytes", ctypes.c_uint64),
                ("requested_bytes", ctypes.c_uint64), ("stream", ctypes.c_uint64),
                ("pool_id", ctypes.c_uint64 * 2), ("block_count", ctypes.c_uint32),
                ("is_large", ctypes.c_bool), ("is_expandable", ctypes.c_bool)]


_STATES = ("active_allocated", "active_pending_free", "inactive")  # uf_block_state, unfrag/event.h
_WALK = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.POINTER(_Segment),
                         ctypes.POINTER(_Block))


def is_active():
    return _plain is not None


def _load():
    path = os.path.join(os.path.dirname(library.path()), "libunfrag_plain.so")
    try:
        plain = ctypes.CDLL(path)
    except OSError as problem:
        raise UnfragError(f"and plain functions are not there either ({problem})") from None
    plain.uf_plain_begin.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint64,
                                     ctypes.c_double, ctypes.c_void_p]
    plain.uf_plain_allocator.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t]
    plain.uf_plain_allocator.restype = ctypes.c_void_p
    return path, plain


def install(torch, target, options):
    """Installs it. Raises UnfragError with the reason if it cannot."""
    global _plain
    library.load()
    path, plain = _load()
    try:
        c10 = ctypes.CDLL(os.path.join(target.folder, "lib", "libc10.so"))
        throw = ctypes.cast(getattr(c10, _THROW), ctypes.c_void_p)
        make = torch.cuda.memory.CUDAPluggableAllocator
    except (OSError, AttributeError) as problem:
        raise UnfragError(f"and torch {target.version} takes no plain functions: {problem}") from None
    limit = options.limit
    if plain.uf_plain_begin(options.policy.encode(), options.conf.encode(),
                            limit if isinstance(limit, int) else 0,
                            limit if isinstance(limit, float) else 0.0, throw) != 0:
        raise UnfragError("and plain functions cannot be prepared: no host memory, or a second time")
    own = make(path, "uf_plain_alloc", "uf_plain_free")
    inner = own.allocator()
    try:
        for setter, name in (("set_record_stream_fn", "uf_plain_use"),
                             ("set_begin_allocate_to_pool", "uf_plain_begin_pool")):
            address = ctypes.cast(getattr(plain, name), ctypes.c_void_p).value
            getattr(inner, setter)(address)
    except AttributeError as problem:
        raise UnfragError(f"and torch {target.version} takes no plain functions: {problem}") from None
    torch.cuda.memory.change_current_allocator(own)
    _kept.extend((c10, own))
    _plain = plain
    _answer(torch)


def allocator(device):
    """The uf_allocator of a GPU, as an integer."""
    text = ctypes.create_string_buffer(500)
    found = _plain.uf_plain_allocator(int(device), text, len(text))
    if not found:
        raise UnfragError(text.value.decode("utf-8", "replace"))
    return found


def _nested(flat):
    """{"a.b.c": 1} as {"a": {"b": {"c": 1}}}."""
    tree = {}
    for key, value in flat.items():
        *above, last = key.split(".")
        at = tree
        for part in above:
            at = at.setdefault(part, {})
        at[last] = value
    return tree


def _segments(device, address):
    found = []

    def see(_, segment, blocks):
        one = segment.contents
        row = {"device": device, "address": one.addr, "total_size": one.total_bytes,
               "allocated_size": one.allocated_bytes, "active_size": one.active_bytes,
               "requested_size": one.requested_bytes, "stream": one.stream,
               "segment_type": "large" if one.is_large else "small",
               "segment_pool_id": tuple(one.pool_id), "is_expandable": one.is_expandable,
               "frames": [], "blocks": []}
        for i in range(one.block_count):
            block = blocks[i]
            row["blocks"].append({"address": block.addr, "size": block.size_bytes,
                                  "requested_size": block.requested_bytes,
                                  "state": _STATES[block.state], "frames": []})
        found.append(row)
        return True

    library.call("uf_walk", address, _WALK(see), None)
    return found


def _answer(torch):
    """The calls under torch._C that PyTorch refuses for such an allocator."""
    fractions, made = {}, {}

    def of(device):
        made[device] = allocator(device)
        return made[device]

    def set_fraction(fraction, device):
        library.call("uf_fraction_set", of(device), float(fraction))
        fractions[device] = fraction

    def empty_cache(*_):
        for index in range(torch.cuda.device_count()):
            if index in made or index == torch.cuda.current_device():
                library.call("uf_empty_cache", of(index))

    def snapshot(*_):
        rows = [row for index in range(torch.cuda.device_count())
                for row in _segments(index, of(index))]
        return {"segments": rows, "device_traces": [[] for _ in range(torch.cuda.device_count())],
                "allocator_settings": {}, "external_annotations": []}

    for name, answer in {
            "_cuda_memoryStats": lambda device: _nested(library.stats(of(device))),
            "_cuda_resetAccumulatedMemoryStats":
                lambda device: library.call("uf_stats_reset_accumulated", of(device)),
            "_cuda_resetPeakMemoryStats":
                lambda device: library.call("uf_stats_reset_peak", of(device)),
            "_cuda_emptyCache": empty_cache,
            "_cuda_setMemoryFraction": set_fraction,
            "_cuda_getMemoryFraction": lambda device: fractions.get(device, 1.0),
            "_cuda_memorySnapshot": snapshot}.items():
        if hasattr(torch._C, name):
            setattr(torch._C, name, answer)
