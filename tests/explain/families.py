# SPDX-License-Identifier: MIT
"""Builds out-of-memory messages of every wording family from numbers, and wraps them the way logs
and people do. Shares nothing with the reader: the wordings are written out here again."""

import json
import re

UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "MB": 1 << 20, "GB": 1 << 30}


def size(text):
    """The bytes of "22.00 MiB", or None."""
    match = re.match(r"([\d.]+) (bytes|KiB|MiB|GiB|MB|GB)", text or "")
    if not match:
        return None
    whole, _, fraction = match.group(1).partition(".")
    unit, scale = UNITS[match.group(2)], 10 ** len(fraction)
    return (int(whole + fraction) * unit * 2 + scale) // (2 * scale)


def clause(pattern, row):
    match = re.search(pattern, row["other_clause"])
    return match.group(1) if match else None


def old_style(row):
    form = row["form"]
    value = " ".join(row["unallocated_or_reserved_or_cached"].split()[:2])
    free = f"; {row['free']} free" if row["free"] != "-" else ""
    last = f"{value} cached" if form == "T1" else f"{value} reserved in total by PyTorch"
    head = "XPU" if form == "X0" else "CUDA"
    text = (f"RuntimeError: {head} out of memory. Tried to allocate {row['tried_to_allocate']} "
            f"(GPU {row['device']}; {row['total']} total capacity; {row['allocated']} already "
            f"allocated{free}; {last})")
    if form == "T3":
        text += (" If reserved memory is >> allocated memory try setting max_split_size_mb to avoid "
                 "fragmentation.  See documentation for Memory Management and "
                 "PYTORCH_CUDA_ALLOC_CONF")
    return text


def new_style(row):
    form = row["form"]
    head = {"H": "HIP", "X": "XPU"}.get(form[0], "CUDA")
    capacity = "capacty" if form == "T4" else "capacity"
    free = f" of which {row['free']} is free." if row["free"] != "-" else "."
    text = (f"torch.OutOfMemoryError: {head} out of memory. Tried to allocate "
            f"{row['tried_to_allocate']}. GPU {row['device']} has a total {capacity} of "
            f"{row['total']}{free} ")
    this, numbered = clause(r"this process ([\d.]+ \w+)", row), clause(r"Process N ([\d.]+ \w+)", row)
    if numbered:
        text += f"Process 4242 has {numbered} memory in use. "
    if this:
        text += f"Including non-PyTorch memory, this process has {this} memory in use. "
    allowed = clause(r"([\d.]+ \w+) allowed", row)
    if allowed:
        text += f"{allowed} allowed; "
    pools = clause(r"([\d.]+ \w+) in private pools", row)
    graphs = "HIP Graphs" if form == "H3" else "CUDA Graphs"
    between = f", with {pools} allocated in private pools (e.g., {graphs})," if pools else ","
    text += f"Of the allocated memory {row['allocated']} is allocated by PyTorch{between} and "
    unallocated = row["unallocated_or_reserved_or_cached"]
    if unallocated.startswith("?"):
        return text
    text += f"{unallocated} is reserved by PyTorch but unallocated. "
    if form[0] == "X":
        return text + "Please use `empty_cache` to release all unoccupied cached memory."
    name = {"H1": "PYTORCH_HIP_ALLOC_CONF", "T7": "PYTORCH_ALLOC_CONF"}.get(
        form, "PYTORCH_CUDA_ALLOC_CONF")
    hint = "max_split_size_mb" if form == "T4" else f"{name}=expandable_segments:True"
    return text + (f"If reserved but unallocated memory is large try setting {hint} to avoid "
                   "fragmentation.  See documentation for Memory Management")


def native(row):
    return old_style(row) if row["form"] in ("T1", "T2", "T3", "X0") else new_style(row)


def apple(row, pool="private"):
    return (f"RuntimeError: MPS backend out of memory (MPS allocated: {row['allocated']}, other "
            f"allocations: {row['other']}, max allowed: {row['max_allowed']}). Tried to allocate "
            f"{row['tried_to_allocate']} on {pool} pool. Use PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 "
            "to disable upper limit for memory allocations (may cause system failure).")


def asynchronous(row):
    return (f"torch.OutOfMemoryError: Allocation on device {row['device']} would exceed allowed "
            "memory. (out of memory)\n"
            f"Currently allocated     : {row['allocated']}\n"
            f"Requested               : {row['requested']}\n"
            f"Device limit            : {row['limit']}\n"
            f"Free (according to CUDA): {row['free']}\n"
            "PyTorch limit (set by user-supplied memory fraction)\n"
            "                        : 17179869184.00 GiB")


def wrap_hard(text, width):
    return "\n".join(text[i:i + width] for i in range(0, len(text), width))


def wrap_soft(text, width):
    return re.sub(r"(.{%d}\S*) " % width, r"\1\n", text)


def prefixed(text, prefix):
    return "\n".join(prefix + line for line in wrap_soft(text, 60).split("\n"))


def coloured(text):
    return " ".join(f"\x1b[1;31m{word}\x1b[0m" if i % 3 == 0 else word
                    for i, word in enumerate(text.split(" ")))


NOISE = "\n".join(f"2024-05-01 10:00:{i % 60:02d} INFO step {i} loss {1 / (i + 1):.4f}"
                  for i in range(300))

# name -> what it makes of a message; bytes where it is no UTF-8.
WRAPPINGS = {
    "plain": lambda t: t,
    "in a log": lambda t: NOISE + "\n" + t + "\nTraceback follows\n" + NOISE,
    "lower case": str.lower,
    "upper case": str.upper,
    "coloured line": lambda t: "\x1b[31m" + t + "\x1b[0m",
    "coloured words": coloured,
    "broken at blanks": lambda t: wrap_soft(t, 70),
    "broken at column 80": lambda t: wrap_hard(t, 80),
    "broken at column 37": lambda t: wrap_hard(t, 37),
    "indented": lambda t: prefixed(t, "        "),
    "quoted": lambda t: prefixed(t, "> "),
    "ranks": lambda t: prefixed(t, "[rank3]: "),
    "compose": lambda t: prefixed(t, "trainer-1  | "),
    "ray": lambda t: prefixed(t, "(Worker pid=1234) "),
    "time stamps": lambda t: prefixed(t, "2024-06-22T15:13:25.079Z "),
    "more time stamps": lambda t: prefixed(t, "[2024-06-22 15:13:25,079] "),
    "rich box": lambda t: "\n".join(f"│ {line:<72} │" for line in wrap_soft(t, 50).split("\n")),
    "json": lambda t: json.dumps({"level": "error", "message": t}),
    "json coloured": lambda t: json.dumps({"message": "\x1b[31m" + t + "\x1b[0m"}),
    "carriage returns": lambda t: wrap_soft(t, 70).replace("\n", "\r\n"),
    "markdown": lambda t: "**" + t.replace("out of memory", "`out of memory`") + "**",
    "non-breaking": lambda t: t.replace(" ", "\u00a0"),
    "progress bar": lambda t: " 40%|████      | 4/10 [00:01<00:02]\r" + t,
    "utf-16": lambda t: b"\xff\xfe" + (t + "\r\n").encode("utf-16-le"),
    "utf-16 big": lambda t: b"\xfe\xff" + t.encode("utf-16-be"),
    "twice": lambda t: t + "\n\nDuring handling of the above exception:\n\n" + t,
    "far away": lambda t: NOISE * 40 + "\n" + t,
}
