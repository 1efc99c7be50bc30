# SPDX-License-Identifier: MIT
"""PyTorch's own allocator, left in place: a limit if one was asked for, and what `top` needs."""

import os

from .say import is_verbose, parse_size, say


def limit_when_ready(torch, limit):
    """Sets the limit on every GPU as soon as CUDA starts, which it does not start itself."""
    if isinstance(limit, str):
        limit = parse_size(limit)

    def set_limit():
        for device in range(torch.cuda.device_count()):
            share = limit
            if isinstance(limit, int):
                total = torch.cuda.get_device_properties(device).total_memory
                share = min(1.0, limit / total)
            torch.cuda.set_per_process_memory_fraction(share, device)

    torch.cuda._lazy_call(set_limit)


_watcher = None


def begin(torch, limit=None):
    """A limit if there is one, and a page for `unfrag top` once CUDA has started."""
    global _watcher
    if torch.version.cuda is None:
        return
    if limit:
        limit_when_ready(torch, limit)
    from . import activate
    if _watcher is None and not activate.is_active() and \
            os.environ.get("UNFRAG_MONITOR", "") != "0":
        from .page import Watcher
        _watcher = Watcher(torch)
        torch.cuda._lazy_call(_watcher.start)
    if is_verbose():
        say("watching: PyTorch's own allocator is in place")
