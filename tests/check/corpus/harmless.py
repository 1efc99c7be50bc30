"""Nothing here is a finding: os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "max_split_size_mb:10"."""
import os

os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"  # max_split_size_mb:10
os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb=128")
os.environ["PYTORCH_ALLOC_CONF_NOTE"] = "max_split_size_mb=128"

import torch

HELP = '''
export PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:10
nvidia-smi --gpu-reset
torch.backends.cuda.max_split_size_mb = 128
'''
print("torch.cuda.memory_reserved(22 * 1024**3)")
torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.cudnn.benchmark = True
for device in range(torch.cuda.device_count()):
    print(torch.cuda.memory_reserved(device), torch.cuda.memory_allocated(0))
torch.cuda.set_per_process_memory_fraction(0.9)
active, reserved, allocated = 1.0, 2.0, 3.0
print((reserved - active) / reserved, (reserved - allocated) / reserved)
while True:
    try:
        break
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()
torch.cuda.empty_cache()
