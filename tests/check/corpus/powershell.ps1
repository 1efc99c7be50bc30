# $env:PYTORCH_CUDA_ALLOC_CONF = "max_split_size_mb:10"
$env:PYTORCH_CUDA_ALLOC_CONF = "max_split_size_mb:128;garbage_collection_threshold:0.8"
$env:PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128
$PYTORCH_CUDA_ALLOC_CONF = "expandable_segments:True"
set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
[Environment]::SetEnvironmentVariable("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True", "User")
$env:PYTORCH_CUDA_ALLOC_CONF = 'expandable_segments:True'; python main.py
