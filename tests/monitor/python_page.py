#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""python_page.py UNFRAG: a page that python/unfrag/page.py writes, read by `unfrag top` and `unfrag
export`: every number that goes in comes out under its own name."""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def load_page():
    path = os.path.join(ROOT, "python", "unfrag", "page.py")
    spec = importlib.util.spec_from_file_location("unfrag_page", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def output(program, *words):
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: {done.returncode}\n{done.stderr}")
    return done.stdout


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        os.environ["UNFRAG_MONITOR_DIR"] = folder
        module = load_page()
        page = module.Page(3, "A card", 24 << 30, "max_split_size_mb:128")
        stats = {key: 1000 + 7 * number for number, key in enumerate(module.KEYS)}
        page.write(stats, 5 << 30, 16 << 30)
        shown = json.loads(output(program, "top", "--once", "--json").split("\n")[0])
        metrics = output(program, "export", "--textfile=-")
        page.close()
    one = shown["processes"][0]
    wanted = {"pid": os.getpid(), "device": 3, "device_name": "A card", "policy": "stock",
              "conf": "max_split_size_mb:128", "limit_bytes": 16 << 30,
              "device_total_bytes": 24 << 30, "device_free_bytes": 5 << 30, "cached_bytes": None,
              "retries": stats["num_alloc_retries"], "ooms": stats["num_ooms"],
              "allocations": stats["allocation.all.allocated"], "stats": stats}
    for group in ("reserved", "active", "allocated", "requested"):
        wanted[f"{group}_bytes"] = stats[f"{group}_bytes.all.current"]
        wanted[f"metric {group}"] = stats[f"{group}_bytes.all.current"]
        line = next(line for line in metrics.split("\n")
                    if line.startswith(f"unfrag_{group}_bytes{{"))
        one[f"metric {group}"] = int(line.rsplit(" ", 1)[1])
    bad = [f"{name}: {value} went in, {one.get(name)} came out" for name, value in wanted.items()
           if one.get(name) != value]
    print("\n".join(bad))
    print(f"{len(wanted) - len(bad)} passed, {len(bad)} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
