import os
os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "max_split_size_mb:512"
import torch
device = "cuda:0"
x = torch.zeros(4, device=device)
set_conf = torch.cuda.memory._set_allocator_settings
torch.cuda.memory._set_allocator_settings("max_split_size_mb:1024")
torch.cuda.memory._set_allocator_settings("max_split_size_mb:256")
torch.cuda.memory._set_allocator_settings("expandable_segments:True,max_split_size_mb:1024")
torch._C._accelerator_setAllocatorSettings("per_process_memory_fraction:0.5")
torch._C._accelerator_setAllocatorSettings("backend:cudaMallocAsync")
torch._C._accelerator_setAllocatorSettings("expandable_segments=True")
torch.cuda.memory_stats()["segment.all.current"]
