#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How many images complete under a limit, with each of PyTorch's settings and with unfrag.

    images.py [--scenario NAME]... [--setting NAME]... [--limit GIB]... [--workers N]
              [--seconds S] [--unfrag PROGRAM] --log FILE.jsonl [--table FILE.md]

Each run is a fresh process of examples/generate.py on real PyTorch with random weights; the limit
is PyTorch's memory fraction. With several workers the runs share the GPU: what completes carries
over, seconds do not, so times are taken with --workers 1. Runs that the log already has are not
made again; none is begun after --seconds. Needs diffusers (PYTHONPATH may name its source tree).
"""

import argparse
import concurrent.futures
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
GENERATE = os.path.join(ROOT, "examples", "generate.py")
SETTINGS = {
    "default": "",
    "128": "max_split_size_mb:128",
    "128+gc": "max_split_size_mb:128,garbage_collection_threshold:0.8",
    "expandable": "expandable_segments:True",
    "unfrag": None,
}
# name: model, what is made, limits in GiB
SCENARIOS = {
    "sdxl-mixed": ("sdxl", "--mixed --images 8 --steps 6", [8, 9, 10, 11, 12, 13, 14, 16, 20, 24]),
    "sdxl-1024": ("sdxl", "--size 1024x1024 --images 5 --steps 6",
                  [9, 9.5, 9.8, 10, 10.5, 11, 11.5, 12, 16]),
    "sdxl-832": ("sdxl", "--size 832x832 --images 5 --steps 6", [8, 8.5, 9, 9.5, 10, 12]),
    "sdxl-offload": ("sdxl", "--mixed --images 20 --steps 6 --offload", [5, 5.5, 6, 7, 8]),
    "sdxl-offload-sliced": ("sdxl", "--mixed --images 20 --steps 6 --offload --vae-slicing",
                            [5.5, 6]),
    "z-image-1024": ("z-image-turbo", "--size 1024x1024 --images 5 --steps 9", [21, 21.6, 22, 24]),
    "z-image-50": ("z-image-turbo", "--size 1024x1024 --images 50 --steps 9", [22, 24]),
}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--scenario", action="append", choices=list(SCENARIOS))
    parser.add_argument("--setting", action="append", choices=list(SETTINGS))
    parser.add_argument("--limit", action="append", type=float, metavar="GIB")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--unfrag", default=os.path.join(ROOT, "build", "unfrag"))
    parser.add_argument("--log", required=True, metavar="FILE.jsonl")
    parser.add_argument("--table", metavar="FILE.md")
    return parser.parse_args()


def command(options, scenario, setting, limit, result):
    model, what, _ = SCENARIOS[scenario]
    words = [sys.executable, GENERATE, model, "--random-weights", *what.split(),
             "--limit", f"{limit}GiB", "--json", result]
    if setting == "unfrag":
        words = [options.unfrag, "run", "--require", "--policy", "unfrag", "--", *words]
    return words


def once(options, job):
    """One run: its entry for the log."""
    scenario, setting, limit = job
    environment = dict(os.environ, PYTHONUNBUFFERED="1", OMP_NUM_THREADS="3")
    environment.pop("PYTORCH_ALLOC_CONF", None)
    environment["PYTORCH_CUDA_ALLOC_CONF"] = SETTINGS[setting] or ""
    entry = {"scenario": scenario, "setting": setting, "limit_gib": limit,
             "workers": options.workers}
    with tempfile.TemporaryDirectory() as folder:
        result = os.path.join(folder, "result.json")
        started = time.monotonic()
        try:
            done = subprocess.run(command(options, scenario, setting, limit, result), text=True,
                                  env=environment, capture_output=True, timeout=500, check=False)
            entry["exit_code"] = done.returncode
            if done.returncode not in (0, 1) or not os.path.exists(result):
                entry["error"] = (done.stdout + done.stderr)[-1500:]
        except subprocess.TimeoutExpired:
            entry["exit_code"] = None
            entry["error"] = "no end after 500 s"
        entry["wall_seconds"] = round(time.monotonic() - started, 2)
        if os.path.exists(result):
            with open(result, encoding="utf-8") as file:
                entry["result"] = json.load(file)
    return entry


def read_log(path):
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def cell(entry):
    """`made/asked, median seconds of the images from the second on, retries, peak reserved`."""
    result = entry.get("result")
    if result is None:
        return "failed"
    images = result["images"]
    if "load_error" in result:
        return "0 (load)"
    seconds = [image["seconds"] for image in images[1:] if image["is_made"]]
    text = f"{sum(image['is_made'] for image in images)} of {len(images)}"
    if images:
        text += f", {images[-1]['num_alloc_retries']} retries"
        text += f", {images[-1]['peak_reserved_bytes'] / 2**30:.2f} GiB"
    if seconds and entry["workers"] == 1:
        text += f", {statistics.median(seconds):.3f} s (slowest {max(seconds):.3f})"
    return text


def table(entries):
    lines = []
    for scenario, (model, what, _) in SCENARIOS.items():
        chosen = [entry for entry in entries if entry["scenario"] == scenario]
        if not chosen:
            continue
        names = [name for name in SETTINGS if any(e["setting"] == name for e in chosen)]
        lines += [f"## {scenario}", "", f"`generate.py {model} {what}`", "",
                  "| limit, GiB | " + " | ".join(names) + " |", "|---:" * (len(names) + 1) + "|"]
        for limit in sorted({entry["limit_gib"] for entry in chosen}):
            cells = []
            for name in names:
                of_name = [e for e in chosen if (e["limit_gib"], e["setting"]) == (limit, name)]
                alone = [e for e in of_name if e["workers"] == 1]
                cells.append(cell((alone or of_name)[-1]) if of_name else "-")
            lines.append(f"| {limit:g} | " + " | ".join(cells) + " |")
        lines.append("")
    return "\n".join(lines)


def main():
    options = arguments()
    have = {(e["scenario"], e["setting"], e["limit_gib"], e["workers"] == 1)
            for e in read_log(options.log)}
    jobs = [(scenario, setting, limit)
            for scenario in options.scenario or SCENARIOS
            for limit in options.limit or SCENARIOS[scenario][2]
            for setting in options.setting or SETTINGS
            if (scenario, setting, float(limit), options.workers == 1) not in have]
    started, lock = time.monotonic(), threading.Lock()

    def work(job):
        if time.monotonic() - started > options.seconds:
            return
        entry = once(options, job)
        with lock:
            with open(options.log, "a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")
            print(f"{time.monotonic() - started:6.0f} s  {job[0]} {job[1]} {job[2]:g} GiB: "
                  f"{cell(entry)} {entry.get('error', '')}", flush=True)

    with concurrent.futures.ThreadPoolExecutor(options.workers) as pool:
        list(pool.map(work, jobs))
    text = table(read_log(options.log))
    print(text)
    if options.table:
        with open(options.table, "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
