#!/bin/sh
# Lines that tutorials suggest, and that do not do what is said of them. docs/advice.md explains each;
# unfrag check examples/mistakes.sh finds them.
PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
python main.py
export PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128;garbage_collection_threshold:0.8
python main.py
export PYTORCH_CUDA_ALLOC_CONF=garbage_collection_threshold:0.8
export PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:512
python main.py
PYTORCH_ALLOC_CONF=expandable_segments:True PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128 python main.py
PYTORCH_NO_CUDA_MEMORY_CACHING=1 python main.py
sudo nvidia-smi --gpu-reset
