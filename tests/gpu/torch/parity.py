#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What PyTorch's callers had, and have under unfrag: on a GPU, with real PyTorch.

    parity.py [--unfrag PROGRAM] [--policy NAME]... [--only NAME] [--compile]

Runs each check in a process of its own for each policy, under `unfrag run --require`, and prints a
table. --compile adds torch.compile, which takes half a minute. Exit code 1 if any check fails.
"""

import argparse
import os
import subprocess
import sys
import time

GIB, MIB = 1 << 30, 1 << 20
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
ALONE = ("speed", "parts")  # with nothing else on the machine; also on PyTorch's own allocator


def check_backend(torch):
    assert torch.cuda.get_allocator_backend() == "unfrag"
    return torch.__version__


def check_statistics(torch):
    x = torch.empty(3 * MIB, dtype=torch.uint8, device="cuda")
    small = torch.empty(1000, dtype=torch.uint8, device="cuda")
    stats = torch.cuda.memory_stats()
    assert stats["allocated_bytes.all.current"] == 3 * MIB + 1024, stats
    assert stats["requested_bytes.all.current"] == 3 * MIB + 1000
    assert stats["allocation.large_pool.current"] == 1 and len(stats) == 122, len(stats)
    del x, small
    assert torch.cuda.memory_allocated() == 0
    assert torch.cuda.max_memory_allocated() == 3 * MIB + 1024
    torch.cuda.reset_peak_memory_stats()
    assert torch.cuda.max_memory_allocated() == 0
    torch.cuda.reset_accumulated_memory_stats()
    assert torch.cuda.memory_stats()["allocation.all.allocated"] == 0
    assert "GPU reserved memory" in torch.cuda.memory_summary()
    assert torch.accelerator.memory_stats()["allocation.all.current"] == 0


def check_empty_cache(torch):
    x = torch.empty(300 * MIB, dtype=torch.uint8, device="cuda")
    del x
    assert torch.cuda.memory_reserved() >= 300 * MIB
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() == 0, torch.cuda.memory_reserved()


def check_history(torch):
    import pickle
    import tempfile
    torch.cuda.memory._record_memory_history(max_entries=1000)
    x = torch.empty(5 * MIB, dtype=torch.uint8, device="cuda")
    y = torch.empty(9 * MIB, dtype=torch.uint8, device="cuda")
    del y
    snapshot = torch.cuda.memory._snapshot()
    events = snapshot["device_traces"][0]
    actions = [event["action"] for event in events]
    assert actions.count("alloc") == 2 and actions.count("free_completed") == 1, actions
    alloc = next(event for event in events if event["action"] == "alloc")
    assert any(frame["name"] == "check_history" for frame in alloc["frames"]), alloc
    assert abs(alloc["time_us"] - time.time() * 1e6) < 60e6
    blocks = [block for segment in snapshot["segments"] for block in segment["blocks"]
              if block["state"] == "active_allocated" and block["requested_size"] == 5 * MIB]
    assert len(blocks) == 1 and blocks[0]["frames"] and blocks[0]["address"] == x.data_ptr()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "s.pickle")
        torch.cuda.memory._dump_snapshot(path)
        with open(path, "rb") as stream:
            assert len(pickle.load(stream)["segments"]) == len(snapshot["segments"])
    torch.cuda.memory._record_memory_history(enabled=None)


def check_out_of_memory(torch):
    told = []
    torch._C._cuda_attach_out_of_memory_observer(lambda *numbers: told.append(numbers))
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(2 * GIB / total)
    assert abs(torch.cuda.get_per_process_memory_fraction() - 2 * GIB / total) < 1e-9
    keep = torch.empty(GIB, dtype=torch.uint8, device="cuda")
    try:
        torch.empty(GIB + 64 * MIB, dtype=torch.uint8, device="cuda")
        raise AssertionError("no error came")
    except torch.OutOfMemoryError as error:
        text = str(error)
    assert "CUDA out of memory. Tried to allocate 1.06 GiB. GPU 0 has a total capacity" in text, text
    assert "2.00 GiB allowed" in text and "\nunfrag: " in text, text
    assert len(told) == 1 and told[0][0] == 0, told
    assert torch.cuda.memory_stats()["num_ooms"] == 1
    torch.cuda.set_per_process_memory_fraction(1.0)
    again = torch.empty(2 * GIB, dtype=torch.uint8, device="cuda")
    del keep, again
    try:
        torch.empty(1 << 42, dtype=torch.uint8, device="cuda")
        raise AssertionError("no error came")
    except torch.OutOfMemoryError:
        pass
    return text.replace("\n", " / ")


def check_results(torch):
    a = torch.randn(1500, 700, dtype=torch.float64)
    b = torch.randn(700, 900, dtype=torch.float64)
    found = (a.cuda() @ b.cuda()).cpu()
    assert torch.allclose(found, a @ b)
    pinned = torch.ones(1000, pin_memory=True)
    assert pinned.is_pinned() and pinned.cuda(non_blocking=True).sum().item() == 1000


def check_streams(torch):
    side = torch.cuda.Stream()
    total = torch.zeros((), device="cuda", dtype=torch.float64)
    for step in range(50):
        with torch.cuda.stream(side):
            x = torch.full((1 << 20,), step, device="cuda", dtype=torch.float64)
        torch.cuda.current_stream().wait_stream(side)
        x.record_stream(torch.cuda.current_stream())
        total += x.sum()
        del x
    assert total.item() == sum(range(50)) * (1 << 20)


def check_pressure(torch):
    """Blocks that come and go in random order under a tight limit keep what was written."""
    import random
    torch.cuda.set_per_process_memory_fraction(
        2 * GIB / torch.cuda.get_device_properties(0).total_memory)
    order, live, held, number = random.Random(5), {}, 0, 0
    for _ in range(1500):
        size = order.choice([1, 3, 7, 20, 33, 64, 100, 150]) * MIB + order.randrange(0, 4096, 512)
        while held + size > 1.7 * GIB:
            key = order.choice(list(live))
            x, value = live.pop(key)
            assert x[0].item() == value and x[-1].item() == value, key
            held -= x.numel()
            del x
        number += 1
        try:
            x = torch.full((size,), number % 251, dtype=torch.uint8, device="cuda")
        except torch.OutOfMemoryError:
            # Fragmentation: there is room for it by the numbers. It must not happen to unfrag.
            assert os.environ["UNFRAG_POLICY"] == "torch"
            continue
        live[number] = (x, number % 251)
        held += size
    for x, value in live.values():
        assert x.min().item() == value == x.max().item()
    stats = torch.cuda.memory_stats()
    return (f"peak reserved {stats['reserved_bytes.all.peak'] / GIB:.2f} GiB, "
            f"{stats['num_alloc_retries']} retries, {stats['num_ooms']} failures")


def check_convolution(torch):
    torch.backends.cudnn.benchmark = True
    net = torch.nn.Conv2d(64, 64, 3, padding=1).cuda()
    for size in (64, 100, 128):
        y = net(torch.randn(8, 64, size, size, device="cuda"))
        y.square().mean().backward()
    assert torch.isfinite(net.weight.grad).all()


def check_graphs(torch):
    weights = [torch.randn(512, 512, device="cuda") / 23 for _ in range(4)]
    graphs = []
    for rows in (64, 1024, 256, 4096):
        x = torch.randn(rows, 512, device="cuda")
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            y = x
            for w in weights:
                y = (y @ w).relu()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = x
            for w in weights:
                y = (y @ w).relu()
        graphs.append((graph, x, y))
    for _ in range(3):
        for graph, x, y in graphs:
            junk = torch.full((37 * MIB,), 7, dtype=torch.uint8, device="cuda")
            del junk
            torch.cuda.empty_cache()
            x.normal_()
            graph.replay()
            expected = x
            for w in weights:
                expected = (expected @ w).relu()
            assert torch.allclose(y, expected, atol=1e-4)
    pools = {tuple(segment["segment_pool_id"]) for segment in torch.cuda.memory_snapshot()}
    assert len(pools) == 5, pools
    graphs.clear()
    del graph, x, y, expected
    torch.cuda.synchronize()
    torch._C._cuda_clearCublasWorkspaces()  # one was taken inside the first capture
    torch.cuda.empty_cache()
    left = {tuple(segment["segment_pool_id"]) for segment in torch.cuda.memory_snapshot()}
    assert left == {(0, 0)}, left


def check_graphed_backward(torch):
    net = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(),
                              torch.nn.Linear(256, 256)).cuda()
    sample = torch.randn(64, 256, device="cuda", requires_grad=True)
    graphed = torch.cuda.make_graphed_callables(net, (sample,))
    x = torch.randn(64, 256, device="cuda", requires_grad=True)
    graphed(x).square().sum().backward()
    found = net[0].weight.grad.clone() if hasattr(net, "__getitem__") else None
    assert found is not None and torch.isfinite(found).all() and float(found.abs().sum()) > 0


def check_pools(torch):
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        x = torch.full((4 * MIB,), 3, dtype=torch.uint8, device="cuda")
    y = torch.empty(4 * MIB, dtype=torch.uint8, device="cuda")
    own = torch.cuda.memory_snapshot(pool.id)
    assert len(own) >= 1 and all(tuple(s["segment_pool_id"]) == tuple(pool.id) for s in own)
    assert pool.use_count() == 1, pool.use_count()
    del y
    assert bool((x == 3).all())
    del x, pool
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() == 0, torch.cuda.memory_reserved()


def check_profiler(torch):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU],
                                profile_memory=True) as profile:
        x = torch.empty(8 * MIB, dtype=torch.uint8, device="cuda")
        del x
    events = [event for event in profile.events() if event.name == "[memory]" or
              getattr(event, "device_memory_usage", 0)]
    assert events, "no memory events"


def check_refusals(torch):
    import torch.multiprocessing.reductions as reductions
    x = torch.empty(1000, device="cuda")
    try:
        reductions.reduce_tensor(x)
        raise AssertionError("sharing went through")
    except RuntimeError as error:
        assert "tensor.cpu()" in str(error), error


def check_fork(torch):
    x = torch.ones(1000, device="cuda")
    child = os.fork()
    if child == 0:
        del x
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0 and x.sum().item() == 1000


def check_exit(torch):
    import builtins
    builtins.kept = [torch.ones(MIB, device="cuda") for _ in range(20)]
    builtins.graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(builtins.graph):
        builtins.inside = builtins.kept[0] * 2


def check_module(torch):
    import unfrag
    assert unfrag.is_enabled()
    unfrag.reserve("1GiB")
    assert torch.cuda.memory_reserved() >= GIB
    numbers = unfrag.fragmentation()
    assert unfrag.trim() >= GIB and numbers["largest_request_bytes"] > 0
    with unfrag.section("x", quiet=True) as s:
        torch.empty(100 * MIB, dtype=torch.uint8, device="cuda")
    assert s.peak_bytes == 100 * MIB, s.text
    return s.text


def check_speed(torch):
    """Nanoseconds for torch.empty and giving it back, cached."""
    found = []
    for size in (1000, MIB, 32 * MIB):
        for _ in range(200):
            x = torch.empty(size, dtype=torch.uint8, device="cuda")
            del x
        best = None
        for _ in range(7):
            start = time.perf_counter()
            for _ in range(5000):
                x = torch.empty(size, dtype=torch.uint8, device="cuda")
                del x
            took = (time.perf_counter() - start) / 5000 * 1e9
            best = took if best is None else min(best, took)
        found.append(f"{size}: {best:.0f}")
    return "ns " + ", ".join(found)


def check_parts(torch):
    """What of that is the allocator's, from C++."""
    import ctypes
    import tempfile
    if "unfrag" not in sys.modules:  # on PyTorch's own allocator nobody has loaded it
        sys.path.insert(0, os.path.join(os.environ.get("UNFRAG_HOME", ROOT), "python"))
    from unfrag import activate, build
    torch.cuda.init()
    with tempfile.TemporaryDirectory() as folder:
        library = os.path.join(folder, "dispatch.so")
        words = [word for word in build.command(build.Target.of(torch), library)
                 if not word.endswith(".cpp")]
        source = os.path.join(HERE, "dispatch.cpp")
        first = words.index("-L")  # libraries come after what needs them
        subprocess.run([*words[:first], source, *words[first:]], check=True)
        parts = ctypes.CDLL(library).dispatch_parts
    parts.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    text, lines = ctypes.create_string_buffer(1000), []
    allocator = activate.allocator(0) if activate.is_active() else None
    for size in (1000, 32 * MIB):
        parts(allocator, size, text, len(text))
        lines.append(text.value.decode())
    return "; ".join(lines)


def check_compile(torch):
    function = torch.compile(lambda a, b: ((a @ b).relu() + 1).sum(), mode="reduce-overhead")
    for _ in range(5):
        a, b = torch.randn(128, 128, device="cuda"), torch.randn(128, 128, device="cuda")
        assert torch.allclose(function(a, b), ((a @ b).relu() + 1).sum(), rtol=1e-3)


def one(name):
    """In the process under unfrag."""
    import torch
    note = globals()[f"check_{name}"](torch)
    print("NOTE", note or "")


def run(options, policy, name):
    words = [sys.executable, os.path.abspath(__file__), "--one", name]
    if policy != "stock":
        words = [options.unfrag, "run", "--require", "--policy", policy, "--", *words]
    start = time.monotonic()
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=180)
        lines = [line[5:] for line in done.stdout.splitlines() if line.startswith("NOTE ")]
        good = done.returncode == 0
        note = lines[0] if good and lines else (done.stderr.strip() or done.stdout)[-700:]
    except subprocess.TimeoutExpired:
        good, note = False, "no end after 180 s"
    seconds = time.monotonic() - start
    if good:
        print(f"good    {policy:7s} {name:18s} {seconds:5.1f} s  {note}", flush=True)
    else:
        print(f"FAILED  {policy:7s} {name:18s} {seconds:5.1f} s\n{note}\n", flush=True)
    return good


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--unfrag", default="unfrag")
    parser.add_argument("--policy", action="append")
    parser.add_argument("--only", action="append")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--one")
    options = parser.parse_args()
    if options.one:
        one(options.one)
        return 0
    names = options.only or [name[6:] for name in globals() if name.startswith("check_")
                             and (options.compile or name != "check_compile")]
    from concurrent.futures import ThreadPoolExecutor
    jobs = [(policy, name) for policy in options.policy or ["unfrag", "torch"] for name in names
            if name not in ALONE]
    with ThreadPoolExecutor(options.workers) as pool:
        results = list(pool.map(lambda job: run(options, *job), jobs))
    for name in [name for name in ALONE if name in names]:
        for policy in [*(options.policy or ["unfrag", "torch"]), "stock"]:
            results.append(run(options, policy, name))
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
