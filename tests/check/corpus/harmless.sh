#!/bin/sh
# export PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:10
echo "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:10;x"
export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; python main.py
PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:512 python main.py; python other.py
export PYTORCH_CUDA_ALLOC_CONF="roundup_power2_divisions:[256:1,512:2,>:8]"
if [ "$1" = big ]; then export PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:512; fi
python main.py
export PYTORCH_CUDA_ALLOC_CONF="$OTHER"
nvidia-smi -q | grep reset
cat <<END
export PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:10
END
