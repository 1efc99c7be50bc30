# SPDX-License-Identifier: MIT
"""Writes graphs.default with one segment larger than PyTorch makes it: break_trace.py OUT."""

import lzma
import os
import pickle
import sys

with lzma.open(os.path.join(os.environ["DATA"], "graphs.default.pickle.xz")) as stream:
    snapshot = pickle.load(stream)
event = next(event for event in snapshot["device_traces"][0] if event["action"] == "segment_alloc")
event["size"] += 2 << 20
with open(sys.argv[1], "wb") as stream:
    pickle.dump(snapshot, stream)
