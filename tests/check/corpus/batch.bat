@echo off
REM set PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:10
set PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True"
set PYTORCH_CUDA_ALLOC_CONF = expandable_segments:True
set "PYTORCH_CUDA_ALLOC_CONF=garbage_collection_threshold:0.9,max_split_size_mb:512"
python main.py
set PYTORCH_CUDA_ALLOC_CONF=roundup_power2_divisions:[256:1,>:8] & python main.py
export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
setx PYTORCH_CUDA_ALLOC_CONF "expandable_segments:True"
set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
