# SPDX-License-Identifier: MIT
"""What `unfrag trial` learns from a run: statistics of the process that held most, written as the
process ends to a file that trial names. Nothing is counted while the program runs."""

import atexit
import json
import os
import tempfile

KEYS = {"peak_reserved_bytes": "reserved_bytes.all.peak",
        "peak_allocated_bytes": "allocated_bytes.all.peak",
        "num_alloc_retries": "num_alloc_retries", "num_ooms": "num_ooms"}


def numbers(torch):
    """Of the GPU on which most was reserved."""
    best = None
    for device in range(torch.cuda.device_count()):
        stats = torch.cuda.memory_stats(device)
        found = {name: int(stats.get(key, 0)) for name, key in KEYS.items()}
        if best is None or found["peak_reserved_bytes"] > best["peak_reserved_bytes"]:
            best = found
    return best


def write(torch, folder):
    """Never raises: the run counts all the same, without these numbers."""
    try:
        if not torch.cuda.is_initialized():
            return
        result = dict(numbers(torch) or {}, pid=os.getpid(), torch=str(torch.__version__))
        from . import activate
        result["is_unfrag"] = activate.is_active()
        handle, partial = tempfile.mkstemp(dir=folder, prefix=".", suffix=".tmp")
        with os.fdopen(handle, "w") as stream:
            json.dump(result, stream)
        os.rename(partial, os.path.join(folder, f"{os.getpid()}.json"))
    except Exception:  # noqa: BLE001
        pass


def begin(torch):
    folder = os.environ.get("UNFRAG_TRIAL_FOLDER")
    if folder:
        owner = os.getpid()
        atexit.register(lambda: write(torch, folder) if os.getpid() == owner else None)
