# SPDX-License-Identifier: MIT
"""Puts unfrag's allocator into a process with torch, or says why it cannot. All ways to switch it on
end here."""

import ctypes
import os

from . import build, library, plain
from .library import NoCompiler, UnfragError
from .say import is_verbose, parse_size, say

POLICIES = ("unfrag", "torch")

_glue = None
_active = {}  # what is in force; empty until it is


class Options:
    """How the allocator is to be: policy, limit (bytes as an int, a share as a float, None), conf."""

    def __init__(self, policy=None, limit=None, conf=None, require=None):
        self.policy = policy or os.environ.get("UNFRAG_POLICY") or "unfrag"
        if self.policy not in POLICIES:
            raise ValueError(f"there is no policy '{self.policy}': unfrag or torch")
        given = limit if limit is not None else os.environ.get("UNFRAG_LIMIT")
        if isinstance(given, str):
            given = parse_size(given) if given else None
        if isinstance(given, float) and not 0 < given <= 1:
            raise ValueError(f"a limit of {given}: a share is above 0 and at most 1")
        self.limit = given
        if conf is None:
            conf = os.environ.get("UNFRAG_CONF")
        if conf is None:
            conf = os.environ.get("PYTORCH_CUDA_ALLOC_CONF") or \
                os.environ.get("PYTORCH_ALLOC_CONF") or ""
        self.conf = conf
        if require is None:
            require = _required_by_environment()
        self.require = require


def _required_by_environment():
    """--require and UNFRAG_REQUIRE; and under torchrun unless told otherwise: one rank that differs
    from the others in silence is an outage."""
    chosen = os.environ.get("UNFRAG_REQUIRE")
    if chosen is not None and chosen != "":
        return chosen != "0"
    return "TORCHELASTIC_RUN_ID" in os.environ


def is_disabled():
    return os.environ.get("UNFRAG_DISABLE", "") not in ("", "0")


def load_glue(path):
    glue = ctypes.CDLL(path)
    text, size = ctypes.c_char_p, ctypes.c_size_t
    glue.uf_torch_install.argtypes = [text, text, ctypes.c_uint64, ctypes.c_double, text,
                                      size]
    glue.uf_torch_allocator.argtypes = [ctypes.c_int, text, size]
    glue.uf_torch_allocator.restype = ctypes.c_void_p
    glue.uf_torch_devices.restype = ctypes.c_uint64
    glue.uf_torch_conf_set.argtypes = [text, text, size]
    return glue


def install(torch, options):
    """Installs it. Raises UnfragError with the reason if it cannot."""
    global _glue
    if _active:
        return
    target = build.Target.of(torch)
    build.check(target)
    if torch.cuda.is_initialized():
        raise UnfragError("CUDA is in use already: call unfrag.enable() before the first tensor "
                          "goes to the GPU, best at the top of the program")
    if os.environ.get("PYTORCH_NO_CUDA_MEMORY_CACHING", "") not in ("", "0"):
        raise UnfragError("PYTORCH_NO_CUDA_MEMORY_CACHING is set, which asks for no allocator at "
                          "all: unset it")
    if "cudaMallocAsync" in options.conf:
        raise UnfragError("the settings ask for backend:cudaMallocAsync, which replaces the "
                          "allocator: leave it out")
    library.load()
    limit = options.limit
    try:
        glue = load_glue(build.build(target))
    except NoCompiler as problem:
        if options.require:
            raise
        try:
            plain.install(torch, target, options)
        except UnfragError as second:
            raise UnfragError(f"{problem}; {second}") from None
        _active.update(policy=options.policy, limit=limit, conf=options.conf, torch=target.version)
        say(f"active by plain functions, as its glue cannot be built: {problem}. Without the glue "
            f"there are no {plain.MISSING}")
        return
    limit_bytes = limit if isinstance(limit, int) else 0
    share = limit if isinstance(limit, float) else 0.0
    error = ctypes.create_string_buffer(1000)
    code = glue.uf_torch_install(options.policy.encode(), options.conf.encode(), limit_bytes,
                                 share, error, len(error))
    if code != 0:
        raise UnfragError(error.value.decode("utf-8", "replace"))
    _glue = glue
    _active.update(policy=options.policy, limit=limit, conf=options.conf, torch=target.version,
                   glue=target)
    _patch(torch)


def _patch(torch):
    """The one setting call that PyTorch does not send to the current allocator."""
    memory = torch.cuda.memory
    original = getattr(memory, "_set_allocator_settings", None)
    if original is None:
        return

    def set_allocator_settings(env):
        error = ctypes.create_string_buffer(1000)
        if _glue.uf_torch_conf_set(env.encode(), error, len(error)) != 0:
            raise ValueError(error.value.decode("utf-8", "replace"))
        return original(env)

    memory._set_allocator_settings = set_allocator_settings


def allocator(device):
    """The uf_allocator of a GPU, as an integer."""
    if plain.is_active():
        return plain.allocator(device)
    error = ctypes.create_string_buffer(1000)
    found = _glue.uf_torch_allocator(int(device), error, len(error)) if _glue else None
    if not found:
        raise UnfragError(error.value.decode("utf-8", "replace") or
                          "unfrag's allocator is not active in this process")
    return found


def is_active():
    return plain.is_active() or bool(_glue is not None and _glue.uf_torch_is_active())


def describe():
    """The line that proves it."""
    if not is_active():
        return "not active: PyTorch's own allocator is in place"
    limit = _active["limit"]
    from .say import size_text
    told = "no limit" if limit is None else \
        f"limit {size_text(limit)}" if isinstance(limit, int) else f"limit {limit:.0%} of the GPU"
    how = "active by plain functions" if plain.is_active() else "active"
    return (f"{how}: policy {_active['policy']}, {told}, torch {_active['torch']}, "
            f"process {os.getpid()}")


def try_install(torch, options):
    """Installs it, or warns once and leaves PyTorch's own in place; with require it raises."""
    if is_disabled():
        return False
    try:
        install(torch, options)
    except (UnfragError, OSError, ValueError, AttributeError) as problem:
        if options.require:
            raise UnfragError(f"unfrag's allocator is required (--require, UNFRAG_REQUIRE, or "
                              f"torchrun) and cannot be active: {problem}") from problem
        say(f"NOT active, the program runs on PyTorch's own allocator: {problem}")
        _limit_stock(torch, options)
        return False
    if is_verbose():
        say(describe())
    return True


def _limit_stock(torch, options):
    """A limit that was asked for holds on PyTorch's own allocator, too."""
    if options.limit is not None and torch.version.cuda is not None:
        from . import watch
        watch.limit_when_ready(torch, options.limit)


def from_environment(torch):
    """In a process started under unfrag."""
    try:
        options = Options()
    except ValueError as problem:
        raise SystemExit(f"unfrag: {problem}") from None
    try:
        try_install(torch, options)
    except UnfragError as problem:
        say(str(problem))
        raise SystemExit(4) from None
