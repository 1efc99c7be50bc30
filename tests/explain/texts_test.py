#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""texts_test.py PROGRAM: texts that are no message of the caching allocator, cut messages, several
messages, settings in force, contradictions, growth, and what must not be taken for an error."""

import sys

sys.dont_write_bytecode = True

from messages_test import explain  # noqa: E402

MIB, GIB = 1 << 20, 1 << 30
T5 = ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {ask}. GPU 0 has a total "
      "capacity of 11.00 GiB of which {free} is free. Including non-PyTorch memory, this process "
      "has 10.51 GiB memory in use. Of the allocated memory {live} is allocated by PyTorch, and "
      "{cached} is reserved by PyTorch but unallocated. If reserved but unallocated memory is large "
      "try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.")


def t5(ask="64.00 MiB", free="32.00 MiB", live="10.10 GiB", cached="300.00 MiB"):
    return T5.format(ask=ask, free=free, live=live, cached=cached)


# text, form, first cause, other keys
TEXTS = [
    ("memory allocation failed with OOM on device 1 while trying to allocate 20971520 bytes (free: "
     "15794176, total: 150111977472)", "T8", "not_an_oom",
     {"requested_bytes": 20971520, "free_bytes": 15794176, "total_bytes": 150111977472,
      "device": 1}),
    ("RuntimeError: CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported "
     "at some other API call", "driver", "incomplete_message", {}),
    ("x = x.pin_memory()\nRuntimeError: CUDA error: out of memory", "driver", "host_memory", {}),
    ("RuntimeError: cuda runtime error (2) : out of memory at /pytorch/torch/lib/THC/generic/"
     "THCStorage.cu:66", "T0", "incomplete_message", {"requested_bytes": None}),
    ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate more than 1EB memory.",
     "bad-size", "too_large_for_card", {}),
    ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 64.00 MiB. GPU 0 has a total "
     "capacity of 11.64 GiB of which 80.50 MiB is free. Including non-PyTorch memory, this process "
     "has 10.51 GiB memory in use.", "T5", None,
     {"requested_bytes": 64 * MIB, "free_bytes": 80 * MIB + MIB // 2, "allocated_bytes": None,
      "process_bytes": 11285026570, "is_incomplete": True}),
    ("Out of memory. Tried to allocate 384.00 MiB\nGPU: 19.53 GiB total, 329.87 MiB free\n"
     "Allocated by PyTorch: 18.40 GiB\nReserved but unallocated: 402.27 MiB", "summary",
     "fragmentation",
     {"requested_bytes": 384 * MIB, "total_bytes": 20970177823, "free_bytes": 345893765,
      "allocated_bytes": 19756849562, "unallocated_bytes": 421810668}),
    ("[GPU Setting] You will use 91.67% GPU memory (11257.00 MB) to load weights, and use 8.33% GPU "
     "memory (1024.00 MB) to do matrix computation.", "budget", "not_an_oom", {}),
    ("91.66 % (11257.00 MB) for weights, 8.34 % (1024.00 MB) for compute", "budget", "not_an_oom",
     {}),
    ("torch.OutOfMemoryError: Allocation on device 0\nThis error means you ran out of memory on "
     "your GPU.", "A", "incomplete_message", {"requested_bytes": None}),
    ("Allocation on device\nThis error means you ran out of memory on your GPU.\n## Devices\n"
     "- **VRAM Total:** 12884246528\n- **VRAM Free:** 11793334272\n- **Torch VRAM Total:** 0\n"
     "- **Torch VRAM Free:** 0", "A", "incomplete_message",
     {"total_bytes": 12884246528, "free_bytes": 11793334272}),
    ("Memory cgroup out of memory: Killed process 4242 (python) total-vm:81234567kB", "killed",
     "host_memory", {}),
    ("oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null)\nOut of memory: Killed process 1 (x)",
     "killed", "host_memory", {}),
    ("container exited with code 137", "killed", "host_memory", {}),
    ("Process finished with exit code 137 (interrupted by signal 9: SIGKILL)", "killed",
     "host_memory", {}),
    ("    Reason:       OOMKilled\n    Exit Code:    137", "killed", "host_memory", {}),
    ("failed (exitcode: -9) local_rank: 0 (pid: 12) of binary: python", "killed", "host_memory",
     {}),
    ("Loading checkpoint shards:  33%|###  | 1/3\nKilled", "killed", "host_memory", {}),
    ("./run.sh: line 3:  1234 Killed                  python main.py", "killed", "host_memory", {}),
    ("process ended with exit code 134", "abort", "not_an_oom", {}),
    ("terminate called after throwing an instance of 'c10::ValueError'\n what(): Unrecognized key "
     "in PYTORCH_CUDA_ALLOC_CONF\nAborted (core dumped)", "abort", "not_an_oom", {}),
    ("Loading checkpoint shards:   0%|          | 0/3 [00:00<?, ?it/s]", "hang", "host_memory", {}),
    ("INFO: task python:4242 blocked for more than 120 seconds.", "hang", "host_memory", {}),
    ("RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
     "library", "outside_memory", {"error": "CUBLAS_STATUS_ALLOC_FAILED"}),
    ("RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`",
     "library", "outside_memory", {"error": "CUBLAS_STATUS_NOT_INITIALIZED"}),
    ("RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED", "library", "outside_memory",
     {"error": "CUDNN_STATUS_ALLOC_FAILED"}),
    ("NCCL WARN Cuda failure 2 'out of memory'", "driver", "incomplete_message", {}),
    ("RuntimeError: CUDA driver error: out of memory", "driver", "incomplete_message", {}),
    ("torch.AcceleratorError: CUDA error: out of memory", "driver", "incomplete_message", {}),
    ("RuntimeError: HIP error: out of memory", "driver", "incomplete_message", {}),
    ("RuntimeError: UR error: level_zero backend failed with error: 39 "
     "(UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)", "driver", "incomplete_message", {}),
    ("thrust::system::system_error: parallel_for failed: cudaErrorMemoryAllocation: out of memory",
     "driver", "incomplete_message", {"count": 1}),
    ("ggml_backend_cuda_buffer_type_alloc_buffer: allocating 1024.00 MiB on device 0: cudaMalloc "
     "failed: out of memory", "driver", "simply_full", {"requested_bytes": GIB}),
    ("MemoryError: std::bad_alloc: out_of_memory: CUDA error at: /x/rmm/mr/device/"
     "cuda_memory_resource.hpp:70: cudaErrorMemoryAllocation out of memory", "rmm", "simply_full",
     {"count": 1}),
    ("std::bad_alloc: out_of_memory: RMM failure at:/x/rmm/mr/device/pool_memory_resource.hpp:196: "
     "Maximum pool size exceeded", "rmm", "limit", {"count": 1}),
    ("cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 1,073,741,824 bytes (allocated so "
     "far: 2,147,483,648 bytes, limit set to: 2,147,483,648 bytes).", "cupy", "limit",
     {"requested_bytes": GIB, "allocated_bytes": 2 * GIB, "allowed_bytes": 2 * GIB}),
    ("ResourceExhaustedError: OOM when allocating tensor with shape[64,512,512] and type float",
     "tensorflow", "simply_full", {}),
    ("XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 4294967296 bytes.",
     "xla", "simply_full", {"requested_bytes": 4 * GIB}),
    ("BFCArena::AllocateRawInternal(size_t) Failed to allocate memory for requested buffer of size "
     "1073741824", "onnxruntime", "simply_full", {"requested_bytes": GIB}),
    ("ValueError: No available memory for the cache blocks. Try increasing "
     "`gpu_memory_utilization`", "vllm", "simply_full", {}),
    ("RuntimeError: [enforce fail at alloc_cpu.cpp:75] . DefaultCPUAllocator: not enough memory: you "
     "tried to allocate 1073741824 bytes.", "host", "host_memory", {"requested_bytes": GIB}),
    ("numpy.core._exceptions._ArrayMemoryError: Unable to allocate 7.45 GiB for an array with shape "
     "(1000000000,)", "host", "host_memory", {"requested_bytes": 7999376589}),
    ("OSError: [WinError 1455] The paging file is too small for this operation to complete", "host",
     "host_memory", {}),
    ("RuntimeError: DataLoader worker (pid 12) is killed by signal: Killed.", "killed",
     "host_memory", {}),
    ("ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient "
     "shared memory (shm).", "host", "host_memory", {}),
    ("RuntimeError: CUDA error: an illegal memory access was encountered", "other-error",
     "not_an_oom", {}),
    ("RuntimeError: CUDA error: device-side assert triggered", "other-error", "not_an_oom", {}),
    ("Segmentation fault (core dumped)", "other-error", "not_an_oom", {}),
    ("KeyError: 'allocated_bytes'", "none", "not_an_oom", {}),
    ("except torch.cuda.OutOfMemoryError:\n    torch.cuda.empty_cache()", "none", "not_an_oom", {}),
    ("How to avoid running out of memory: use a smaller batch.", "none", "not_an_oom", {}),
    ("The process exited with code 0", "none", "not_an_oom", {}),
    ("All is well\n" * 50, "none", "not_an_oom", {}),
    ("\n".join(f"step {i} allocated {1 + i * 0.25:.2f} GiB" for i in range(12)), "growth", "leak",
     {}),
    ("\n".join(f"image {i}: torch.cuda.memory_allocated() = {10**9 + i * 10**8}"
               for i in range(12)), "growth", "leak", {}),
    ("\n".join(f"step {i} allocated 5.{i % 3}0 GiB" for i in range(40)), "none", "not_an_oom", {}),
    ("\n".join(t5(live=f"{8 + i * 0.6:.2f} GiB") for i in range(4)), "T5", None,
     {"has": ["leak"]}),
    (t5() + "\n" + t5(ask="2.00 GiB") + "\n" + t5(), "T5", "simply_full",
     {"requested_bytes": 2 * GIB, "count": 1}),
    ("\n".join([t5()] * 5), "T5", "fragmentation", {"count": 5}),
    (t5(free="12.00 GiB"), "T5", "refused_with_free_memory", {"is_contradictory": True}),
    (t5(cached="614.40 MiB"), "T5", None, {"is_contradictory": True}),
    (t5().replace("Of the allocated", "5.00 GiB allowed; Of the allocated"), "T7", "limit",
     {"allowed_bytes": 5 * GIB}),
    ("RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 8.00 GiB total capacity; "
     "3.00 GiB already allocated; 4.50 GiB free; 4.00 GiB allowed; 3.10 GiB reserved in total by "
     "PyTorch)", "T3", "limit", {"allowed_bytes": 4 * GIB, "unallocated_bytes": 107374182}),
    ("RuntimeError: XPU out of memory. Tried to allocate 1.71 GiB (GPU 0; 15.56 GiB total capacity; "
     "176.00 MiB already allocated; 176.00 MiB reserved in total by PyTorch)\nCurrent platform can "
     "NOT allocate memory block with size larger than 4GB!", "X0", "incomplete_message", {}),
    (t5().replace("Including", "Process 11 has 512.00 MiB memory in use. Process 12 has 1.00 GiB "
                  "memory in use. Including"), "T5", "fragmentation",
     {"numbered_processes_bytes": 1536 * MIB, "process_bytes": 11285026570}),
    (t5().replace("Of the", "Process 11 has 512.00 MiB memory in use. Of the"), "T5",
     "fragmentation", {"numbered_processes_bytes": 512 * MIB, "process_bytes": 11285026570}),
    (t5().replace("Including non-PyTorch memory, this process", "Process 11 has 512.00 MiB memory "
                  "in use. Process 12"), "T5p", "fragmentation", {"process_bytes": None}),
    ("W0101 memory allocation failed with OOM on device 0 while trying to allocate 20971520 bytes "
     "(free: 15794176, total: 150111977472)\n" + t5(), "T5", "fragmentation", {"count": 1}),
    ("torch.OutOfMemoryError: CUDA out of memory.", "bare", "incomplete_message", {}),
    ("CUDA out of memory. Tried to allo", "bare", "incomplete_message", {}),
    ("CUDA out of memory. Tried to allocate 20.00 M", "bare", "incomplete_message", {}),
]


def check(program, text, form, first, wanted):
    got, code = explain(program, text)
    if "failed" in got:
        return [got["failed"]]
    problems = []
    if got["form"] != form:
        problems.append(f"form {got['form']}, not {form}")
    if first is not None and got["causes"][:1] != [first]:
        problems.append(f"causes {got['causes']}, not {first} first")
    for cause in wanted.get("has", []):
        if cause not in got["causes"]:
            problems.append(f"causes {got['causes']} without {cause}")
    problems += [f"{key} {got.get(key)!r}, not {value!r}" for key, value in wanted.items()
                 if key != "has" and got.get(key, "no key") != value]
    if not got["advice"]:
        problems.append("no advice")
    if code != (1 if got["causes"][0] == "not_an_oom" else 0):
        problems.append(f"exit code {code}")
    return problems


def check_advice(program):
    """Nothing that is in force is advised; nothing that this release does not have."""
    problems = []
    for conf, word in (("expandable_segments:True", "expandable_segments"),
                       ("backend:cudaMallocAsync", "cudaMallocAsync")):
        got, _ = explain(program, t5(), "--conf", conf)
        if word in " ".join(got["advice"]):
            problems.append(f"--conf {conf}: advises {word}")
    got, _ = explain(program, t5())
    if "expandable_segments" not in " ".join(got["advice"]):
        problems.append("does not advise expandable_segments")
    got, _ = explain(program, t5(), "--conf", "max_split_size_mb:128")
    if "max_split_size_mb out" not in " ".join(got["advice"]):
        problems.append("does not take max_split_size_mb out")
    got, code = explain(program, t5(), "--conf", "max_split_size_mb=128;x")
    if code != 2:
        problems.append(f"a broken --conf ends with {code}")
    return problems


def check_cuts(program):
    """A message cut anywhere: never a crash, never a wrong number, never fragmentation first
    without all figures."""
    problems, whole = [], t5()
    for cut in range(0, len(whole), 3):
        got, code = explain(program, whole[:cut]) if cut else ({"causes": ["-"]}, 3)
        if "failed" in got:
            problems.append(f"cut at {cut}: {got['failed']}")
            continue
        for key, value in (("requested_bytes", 64 * MIB), ("free_bytes", 32 * MIB),
                           ("total_bytes", 11 * GIB), ("allocated_bytes", 10844792422),
                           ("unallocated_bytes", 300 * MIB)):
            if got.get(key) not in (None, value):
                problems.append(f"cut at {cut}: {key} {got[key]}")
        is_whole = got.get("unallocated_bytes") is not None
        if got["causes"][0] == "fragmentation" and not is_whole:
            problems.append(f"cut at {cut}: fragmentation without figures")
    return problems


def main(program):
    findings = []
    for text, form, first, wanted in TEXTS:
        problems = check(program, text, form, first, wanted)
        if problems:
            findings.append(f"{text[:70]!r}: {'; '.join(problems)}")
    findings += check_advice(program) + check_cuts(program)
    for finding in findings:
        print(finding)
    print(f"{len(TEXTS)} texts, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
