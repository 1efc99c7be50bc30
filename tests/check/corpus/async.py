import os
os.environ['PYTORCH_CUDA_ALLOC_CONF'] = 'backend:cudaMallocAsync,expandable_segments:True'
import torch
torch.cuda.memory._record_memory_history()
torch.cuda.memory._dump_snapshot("x.pickle")
