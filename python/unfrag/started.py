# SPDX-License-Identifier: MIT
"""What a process does that `unfrag run`, `record` or `trial` (or `unfrag env`) started, once torch
is imported. UNFRAG_MODE says which; a child of such a process is one, too."""

import os


def begin(torch):
    mode = os.environ.get("UNFRAG_MODE", "run")
    if mode == "record":
        from . import record
        record.begin(torch)
        return
    if mode in ("stock", "trial-stock"):
        from . import watch
        watch.begin(torch, os.environ.get("UNFRAG_LIMIT"))
    else:
        from . import activate
        activate.from_environment(torch)
    if mode.startswith("trial"):
        from . import trial
        trial.begin(torch)
