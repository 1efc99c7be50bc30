# Lines that tutorials suggest, and that do not do what is said of them. docs/advice.md explains each;
# unfrag check examples/mistakes.py finds them.
import os
import torch

os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"  # behind the import, still in time

torch.backends.cuda.max_split_size_mb = 128
torch.cuda.set_per_process_memory_fraction(80)
torch.cuda.memory_reserved(22 * 1024**3)

model = torch.nn.Linear(4096, 4096).cuda()  # CUDA is initialised here at the latest
os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "max_split_size_mb:128"
torch.cuda.memory._set_allocator_settings("max_split_size_mb:64")

for step in range(100):
    model(torch.zeros(64, 4096, device="cuda"))
    torch.cuda.empty_cache()

s = torch.cuda.memory_stats()
fragmentation = (s["allocated_bytes.all.current"] - s["active_bytes.all.current"]) / s["allocated_bytes.all.current"]
print(s["max_split_size"], s["segment.all.current"])
