#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Records seeded random programs on PyTorch's own allocator, for tests/data/recordings.

Needs a GPU and PyTorch.  record_programs.py OUT [SECONDS]  runs all of them, eight at a time, and
leaves NAME.pickle.xz, NAME.stats.json and NAME.limit (the memory limit in bytes, or empty) in OUT.
"""
import gc
import json
import lzma
import os
import pickle
import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

MIB = 2**20
CONFS = {
    "def": "",
    "exp": "expandable_segments:True",
    "s128": "max_split_size_mb:128",
    "s64gc": "max_split_size_mb:64,garbage_collection_threshold:0.7",
    "gc6": "garbage_collection_threshold:0.6",
    "ru": "roundup_power2_divisions:[1:4,64:8,>:2]",
    "l40": "large_segment_size_mb:40,expandable_segments:True",
    "ns": "max_split_size_mb:64,max_non_split_rounding_mb:256",
}
KEEP = []


def graphs(torch, r):
    width = r.choice([512, 1024, 2048])
    weights = [torch.randn(width, width, device="cuda") for _ in range(r.randint(2, 8))]
    captured, shared = [], None

    def forward(x):
        for w in weights:
            x = torch.nn.functional.gelu(x @ w)
        return x

    for _ in range(r.randint(8, 24)):
        x = torch.randn(r.choice([16, 64, 256, 1024, 4096, 8192]), width, device="cuda")
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(r.randint(1, 3)):
                forward(x)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        pool = {"pool": shared} if shared is not None and r.random() < 0.35 else {}
        with torch.cuda.graph(graph, **pool):
            y = forward(x)
        if r.random() < 0.4:
            shared = graph.pool()
        captured.append((graph, x, y))
        for _ in range(3):
            graph.replay()
        if len(captured) > 4:
            captured.pop(r.randrange(len(captured)))
        if r.random() < 0.2:
            shared = None
        t = torch.randn(r.randint(1, 64) * 100000, device="cuda")
        del t
        if r.random() < 0.15:
            torch.cuda.empty_cache()
    torch.cuda.synchronize()
    if r.random() < 0.5:
        captured.clear()
        torch.cuda.empty_cache()
    KEEP.append(captured)


def mempool(torch, r):
    pools, live = [], []

    def tensor():
        size = r.choice([1000, 200000, 3 * MIB, 30 * MIB, r.randint(1, 80 * MIB)])
        return torch.empty(size, dtype=torch.uint8, device="cuda")

    for _ in range(r.randint(10, 30)):
        if r.random() < 0.4 or not pools:
            pools.append(torch.cuda.MemPool())
        pool = r.choice(pools)
        with torch.cuda.use_mem_pool(pool):
            for _ in range(r.randint(1, 8)):
                live.append(tensor())
        for _ in range(r.randint(0, 8)):
            live.append(tensor())
        for _ in range(r.randint(0, 12)):
            if live:
                live.pop(r.randrange(len(live)))
        if r.random() < 0.2 and len(pools) > 1:
            del pool
            pools.pop(r.randrange(len(pools)))
        if r.random() < 0.1:
            torch.cuda.empty_cache()
    KEEP.append((pools, live))


def train(torch, r):
    nn = torch.nn
    width, depth = r.choice([512, 1024]), r.randint(4, 10)
    layer = lambda: nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(),
                                  nn.Linear(4 * width, width), nn.LayerNorm(width))
    model = nn.Sequential(*[layer() for _ in range(depth)]).to("cuda")
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(r.randint(30, 60)):
        x = loss = None
        try:
            x = torch.randn(r.choice([1, 2, 4, 8, 16]) * r.randint(100, 1500), width, device="cuda")
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
        except torch.cuda.OutOfMemoryError:
            pass
        optimizer.zero_grad(set_to_none=True)
        del x, loss
        if r.random() < 0.05:
            torch.cuda.empty_cache()
    KEEP.append((model, optimizer))


def offload(torch, r):
    nn = torch.nn
    models = [nn.Sequential(*[nn.Linear(d, d, bias=False) for _ in range(r.randint(3, 8))])
              for d in (2048, 3072, 4096)]
    for _ in range(r.randint(8, 16)):
        for model in models:
            try:
                model.to("cuda")
                with torch.no_grad():
                    for _ in range(r.randint(1, 4)):
                        model(torch.randn(r.randint(1, 20000), model[0].in_features, device="cuda"))
            except torch.cuda.OutOfMemoryError:
                pass
            model.to("cpu")
            if r.random() < 0.7:
                torch.cuda.empty_cache()


def streams(torch, r):
    queues = [torch.cuda.current_stream()]
    queues += [torch.cuda.Stream() for _ in range(r.randint(2, 5))]
    live = []
    for _ in range(r.randint(500, 1500)):
        try:
            with torch.cuda.stream(r.choice(queues)):
                size = r.choice([1000, 50000, MIB, r.randint(1, 120 * MIB)])
                t = torch.empty(size, dtype=torch.uint8, device="cuda")
                if r.random() < 0.5:
                    t.fill_(1)
        except torch.cuda.OutOfMemoryError:
            for _ in range(len(live) // 2):
                live.pop(r.randrange(len(live)))
            continue
        if r.random() < 0.3:
            t.record_stream(r.choice(queues))
        live.append(t)
        del t
        while len(live) > r.randint(10, 40):
            live.pop(r.randrange(len(live)))
        if r.random() < 0.01:
            torch.cuda.empty_cache()
        if r.random() < 0.02:
            torch.cuda.synchronize()
    KEEP.append(live)


def conv(torch, r):
    nn = torch.nn
    torch.backends.cudnn.benchmark = True
    block = lambda i: nn.Sequential(nn.Conv2d(3 if i == 0 else 64, 64, 3, padding=1),
                                    nn.BatchNorm2d(64), nn.ReLU())
    model = nn.Sequential(*[block(i) for i in range(6)]).to("cuda")
    for _ in range(r.randint(6, 14)):
        x = loss = None
        try:
            x = torch.randn(r.randint(1, 24), 3, r.choice([128, 192, 256, 320]),
                            r.choice([128, 192, 256, 320]), device="cuda")
            loss = model(x).mean()
            loss.backward()
            model.zero_grad(set_to_none=True)
        except torch.cuda.OutOfMemoryError:
            pass
        del x, loss


PROGRAMS = {f.__name__: f for f in (graphs, mempool, train, offload, streams, conv)}


def record(kind, seed, cap_gib, out):
    """One program in this process; never returns."""
    import torch

    torch.manual_seed(seed)
    torch.cuda.init()
    torch.cuda.synchronize()
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.memory._record_memory_history("all", context=None, stacks="python",
                                             max_entries=10_000_000)
    limit = ""
    if cap_gib:
        fraction = cap_gib * 2**30 / total
        torch.cuda.set_per_process_memory_fraction(fraction, 0)
        limit = str(int(fraction * total))
    PROGRAMS[kind](torch, random.Random(seed))
    torch.cuda.synchronize()
    stats, snapshot = dict(torch.cuda.memory_stats()), torch.cuda.memory._snapshot()
    with open(out + ".pickle.xz", "wb") as f:
        f.write(lzma.compress(pickle.dumps(snapshot)))
    with open(out + ".stats.json", "w") as f:
        json.dump(stats, f, indent=0, sort_keys=True)
    with open(out + ".limit", "w") as f:
        f.write(limit)
    print(kind, seed, len(snapshot["device_traces"][0]), "events", flush=True)
    gc.disable()
    os._exit(0)


def all_jobs():
    for seed in range(1, 5):
        for kind in ("graphs", "mempool"):
            for conf in ("def", "exp", "s128"):
                yield kind, seed, conf, 0
        for conf, cap in (("def", 3), ("exp", 2.5), ("s64gc", 3), ("gc6", 3), ("ru", 0)):
            yield "train", seed, conf, cap
        for conf, cap in (("def", 0), ("def", 1.2), ("exp", 1.2), ("gc6", 1.5)):
            yield "offload", seed, conf, cap
        for conf, cap in (("def", 0), ("def", 1.5), ("exp", 1.5), ("s64gc", 1.5), ("ns", 1.5),
                          ("l40", 1.5)):
            yield "streams", seed, conf, cap
        for conf, cap in (("def", 0), ("def", 1), ("exp", 1)):
            yield "conv", seed, conf, cap
        yield "graphs", seed + 50, "def", 1.2


def main():
    if len(sys.argv) == 6 and sys.argv[1] == "--child":
        record(sys.argv[2], int(sys.argv[3]), float(sys.argv[4]), sys.argv[5])
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    out, limit_s, start = sys.argv[1], float(sys.argv[2] if len(sys.argv) > 2 else 600), time.time()
    os.makedirs(out, exist_ok=True)

    def go(job):
        kind, seed, conf, cap = job
        name = f"{kind}-{seed}.{conf}" + (f".cap{cap:g}" if cap else "")
        if time.time() - start > limit_s:
            print("skipped", name)
            return
        command = [sys.executable, os.path.abspath(__file__), "--child", kind, str(seed), str(cap),
                   os.path.join(out, name)]
        done = subprocess.run(command, env={**os.environ, "PYTORCH_CUDA_ALLOC_CONF": CONFS[conf]},
                              capture_output=True, text=True, timeout=300)
        print(name, done.stdout.strip(), "" if done.returncode == 0 else done.stderr[-300:],
              flush=True)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(go, all_jobs()))


if __name__ == "__main__":
    main()
