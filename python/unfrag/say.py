# SPDX-License-Identifier: MIT
"""Lines on stderr: one form, whoever speaks."""

import os
import sys


def is_verbose():
    return os.environ.get("UNFRAG_VERBOSE", "") not in ("", "0")


def say(text):
    rank = os.environ.get("RANK")
    where = f" [rank {rank}]" if rank else ""
    try:
        sys.stderr.write(f"unfrag{where}: {text}\n")
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        pass  # no stderr, as under pythonw or after it was closed


def size_text(count):
    if count is None:
        return "-"
    for unit, shift in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if abs(count) >= 1 << shift:
            return f"{count / (1 << shift):.2f} {unit}"
    return f"{count} B"


def parse_size(text):
    """"24GiB", "512MiB", "1.5 GiB", plain bytes -> bytes; "90%" -> a share from 0 to 1 (a float)."""
    import re
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]*)?)\s*(%|[KMGT]iB|B|)\s*", str(text))
    if not match:
        raise ValueError(f"'{text}' is no size: write 24GiB, 512MiB, plain bytes, or 90%")
    number = float(match.group(1))
    if match.group(2) == "%":
        if not 0 < number <= 100:
            raise ValueError(f"'{text}': a share is above 0 % and at most 100 %")
        return number / 100
    shift = {"": 0, "B": 0, "KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40}[match.group(2)]
    count = int(number * (1 << shift))
    if count <= 0:
        raise ValueError(f"'{text}': a limit is above 0")
    return count
