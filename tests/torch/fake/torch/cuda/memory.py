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
