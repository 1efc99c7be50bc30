# SPDX-License-Identifier: MIT
"""Writes a snapshot without history: make_state.py OUT [--bare] (the list of segments alone)."""

import pickle
import sys

MIB = 1 << 20
ALLOCATED, WAITING, INACTIVE = "active_allocated", "active_pending_free", "inactive"


def segment(address, blocks, kind="large", stream=0, pool=(0, 0), is_expandable=False):
    listed, at = [], address
    for state, mib in blocks:
        listed.append({"address": at, "size": mib * MIB, "requested_size": mib * MIB,
                       "state": state, "frames": []})
        at += mib * MIB

    def total(*states):
        return sum(mib * MIB for state, mib in blocks if state in states)

    return {"device": 0, "address": address, "total_size": at - address,
            "allocated_size": total(ALLOCATED), "active_size": total(ALLOCATED, WAITING),
            "requested_size": total(ALLOCATED, WAITING), "stream": stream, "segment_type": kind,
            "segment_pool_id": pool, "is_expandable": is_expandable, "frames": [],
            "blocks": listed}


SEGMENTS = [
    segment(0x100000000, [(ALLOCATED, 1), (INACTIVE, 1)], kind="small"),
    segment(0x200000000, [(INACTIVE, 40)]),
    segment(0x300000000, [(ALLOCATED, 20)]),
    # Pages of 20 MiB: the cached 50 MiB hold two whole ones.
    segment(0x400000000, [(ALLOCATED, 10), (INACTIVE, 50)], is_expandable=True),
    segment(0x500000000, [(WAITING, 8), (INACTIVE, 12)], stream=7),
    segment(0x600000000, [(INACTIVE, 40)], pool=(0, 3)),
]

with open(sys.argv[1], "wb") as stream:
    is_bare = "--bare" in sys.argv
    pickle.dump(SEGMENTS if is_bare else {"segments": SEGMENTS, "device_traces": [[]]}, stream)
