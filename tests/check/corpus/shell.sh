#!/bin/bash
# export PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:10;x   a comment
echo "set PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:10"
PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
python a.py
export PYTORCH_CUDA_ALLOC_CONF = expandable_segments:True
export PYTORCH_CUDA_ALLOC_CONF= expandable_segments:True
export PYTORCH_CUDA_ALLOC_CONF=garbage_collection_threshold:0.8, expandable_segments:True
PYTORCH_CUDA_ALLOC_CONF=roundup_power2_divisions:[256:1,512:2,>:8] python b.py
export PYTORCH_CUDA_ALLOC_CONF='roundup_power2_divisions:[256:1,512:2,>:8]'
python c.py
set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
$env:PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True"
export PYTORCH_CUDA_ALLOC_CONFIG=expandable_segments:True
export PYTORCH_NO_CUDA_MEMORY_CACHING=1
export PYTORCH_CUDA_ALLOC_CONF="max_split_size_mb=128"
docker run --gpus all -e PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128;expandable_segments:True img
sudo nvidia-smi -r -i 0
env PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True" python x.py
export PYTORCH_CUDA_ALLOC_CONF=${PYTORCH_CUDA_ALLOC_CONF:-expandable_segments:true}
PYTORCH_CUDA_ALLOC_CONF="'expandable_segments:True'" python x.py
python - <<EOF
import torch
torch.cuda.memory_reserved(1<<30)
EOF
python -c "import torch; torch.backends.cuda.max_split_size_mb = 64"
srun --export=ALL,PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128,garbage_collection_threshold:0.8 python x.py
