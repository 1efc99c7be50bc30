"""os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "max_split_size_mb:10" in a docstring"""
import os, subprocess
# os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "max_split_size_mb:10"
print("set PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:10")
CONF = "expandable_segments:true"
os.environ["PYTORCH_CUDA_ALLOC_CONF"] = CONF
os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:1")
n = 3
os.environ["PYTORCH_CUDA_ALLOC_CONF"] = f"max_split_size_mb:{n}"
os.environ.update({"PYTORCH_ALLOC_CONF": "expandable_segments:True"})
subprocess.run(["python", "x.py"], env={**os.environ, "PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb=128"})
subprocess.run("nvidia-smi --gpu-reset -i 0", shell=True)
os.system("export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True")
import torch
os.environ["PYTORCH_CUDA_ALLOC_CONF"] = (
    "backend:cudaMallocAsync"
)
torch._C._accelerator_setAllocatorSettings("expandable_segments:True,max_split_size_mb:512")
torch.cuda.set_per_process_memory_fraction(1)
torch.cuda.set_per_process_memory_fraction(80)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = torch.nn.Linear(2, 2).to(device)
os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
torch._C._accelerator_setAllocatorSettings("expandable_segments:True,max_split_size_mb:512")
torch.cuda.memory._set_allocator_settings("garbage_collection_threshold:0.8")
for i in range(3):
    try:
        model(1)
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()
    if i % 10 == 0:
        torch.cuda.empty_cache()
r = torch.cuda.memory_reserved(0)
r = torch.cuda.memory_reserved(device)
frag = 1 - torch.cuda.memory_stats()["active_bytes.all.current"] / torch.cuda.memory_allocated()
print(torch.cuda.memory_stats()["max_split_size"])
def f(allocated, active, reserved):
    return (reserved - active) / reserved, (reserved - allocated) / reserved
setattr(torch.backends.cuda, "expandable_segments", True)
torch.cuda.memory.caching_allocator_enable(False)
torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.cudnn.benchmark = True
