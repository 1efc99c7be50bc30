/* SPDX-License-Identifier: MIT
 *
 * Pools, other processes and other GPUs in the interface (allocator.h). What does not work yet says
 * which call it was and what to do instead. */
#include "allocator.h"

namespace unfrag {

void Allocator::beginAllocateToPool(c10::DeviceIndex index, PoolId id,
                                    std::function<bool(cudaStream_t)> filter)
{
    device(index).pools.begin(id, std::move(filter));
}

void Allocator::endAllocateToPool(c10::DeviceIndex index, PoolId id)
{
    device(index).pools.end(id);
}

void Allocator::releasePool(c10::DeviceIndex index, PoolId id)
{
    if (!is_forked()) {
        device(index).pools.release(id);
    }
}

int Allocator::getPoolUseCount(c10::DeviceIndex index, PoolId id)
{
    return device(index).pools.use_count(id);
}

static void refuse_own_allocator(const cca::CUDAAllocator *own_allocator)
{
    TORCH_CHECK(own_allocator == nullptr,
                "unfrag: torch.cuda.MemPool(allocator): pools with an allocator of their own are "
                "not supported: use torch.cuda.MemPool() without one, or start with "
                "UNFRAG_DISABLE=1");
}

void Allocator::createOrIncrefPool(c10::DeviceIndex index, PoolId id,
                                   cca::CUDAAllocator *own_allocator)
{
    refuse_own_allocator(own_allocator);
    device(index).pools.acquire(id);
}

void Allocator::createOrIncrefPool(c10::DeviceIndex index, PoolId id,
                                   std::shared_ptr<cca::CUDAAllocator> own_allocator)
{
    createOrIncrefPool(index, id, own_allocator.get());
}

void Allocator::setUseOnOOM(c10::DeviceIndex index, PoolId id, bool is_on)
{
    device(index).pools.set_use_on_oom(id, is_on);
}

void Allocator::setUseOnOOM(c10::DeviceIndex index, PoolId id)
{
    setUseOnOOM(index, id, true);
}

void Allocator::setNoSplit(c10::DeviceIndex index, PoolId id)
{
    device(index).pools.set_no_split(id);
}

bool Allocator::checkPoolLiveAllocations(c10::DeviceIndex index, PoolId id,
                                         const std::unordered_set<void *> &expected)
{
    Device &on = device(index);
    size_t found = 0;
    for (const Segment &segment : walk_segments(on)) {
        if (segment.owner_private_pool_id != id) {
            continue;
        }
        uint64_t addr = segment.address;
        for (const Block &block : segment.blocks) {
            if (block.allocated) {
                if (expected.count(pointer_from(addr)) == 0) {
                    return false;
                }
                found++;
            }
            addr += block.size;
        }
    }
    return found == expected.size();
}

/* What cudagraph trees keep of a pool between two graphs. */
struct Checkpoint final : cca::AllocatorState {
    uf_pool_checkpoint *state = nullptr;
    ~Checkpoint() override
    {
        uf_pool_checkpoint_destroy(state);
    }
};

std::shared_ptr<cca::AllocatorState> Allocator::getCheckpointState(c10::DeviceIndex index,
                                                                   PoolId id)
{
    Device &on = device(index);
    auto checkpoint = std::make_shared<Checkpoint>();
    uf_error error{};
    expect(uf_pool_checkpoint_create(on.allocator(), on.pools.number_of(id, "getCheckpointState"),
                                     &checkpoint->state, &error),
           error, "getCheckpointState");
    return checkpoint;
}

static void note_restored(void *delta, uint64_t addr, uint64_t, bool is_handed_out)
{
    auto &lists = *static_cast<std::pair<std::vector<void *>, std::vector<void *>> *>(delta);
    (is_handed_out ? lists.second : lists.first).push_back(pointer_from(addr));
}

cca::CheckpointDelta Allocator::setCheckpointPoolState(c10::DeviceIndex index,
                                                       std::shared_ptr<cca::AllocatorState> given)
{
    auto *checkpoint = dynamic_cast<Checkpoint *>(given.get());
    TORCH_CHECK(checkpoint != nullptr, "unfrag: setCheckpointPoolState: the state is not unfrag's");
    std::pair<std::vector<void *>, std::vector<void *>> lists;
    uf_error error{};
    expect(uf_pool_checkpoint_restore(device(index).allocator(), checkpoint->state, note_restored,
                                      &lists, &error),
           error, "setCheckpointPoolState");
    cca::CheckpointDelta delta;
    delta.ptrs_freed = std::move(lists.first);
    c10::DeleterFnPtr deleter = raw_deleter();
    for (void *pointer : lists.second) {
        delta.dataptrs_allocd.emplace_back(pointer, pointer, deleter,
                                           c10::Device(c10::DeviceType::CUDA, index));
    }
    return delta;
}

cca::ShareableHandle Allocator::shareIpcHandle(void *)
{
    TORCH_CHECK(false,
                "unfrag: sharing a GPU tensor with another process (torch.multiprocessing queues, "
                "Tensor.share_memory_, reductions) is not supported: send a copy (tensor.cpu()), "
                "or start with UNFRAG_DISABLE=1");
}

/* Memory that a process with PyTorch's own allocator shares: it is the runtime's to open. */
std::shared_ptr<void> Allocator::getIpcDevPtr(std::string)
{
    TORCH_CHECK(false, "unfrag: receiving a GPU tensor from another process is not supported: send "
                       "a copy (tensor.cpu()), or start with UNFRAG_DISABLE=1");
}

/* Pages are mapped for one GPU. A copy between GPUs goes through the runtime's peer copy, which
 * needs no access; a kernel that reads the other GPU's memory would. */
void Allocator::enablePeerAccess(c10::DeviceIndex index, c10::DeviceIndex other)
{
    TORCH_CHECK(settings_.policy == UF_POLICY_TORCH, "unfrag: GPU ", static_cast<int>(other),
                " cannot be given access to memory of GPU ", static_cast<int>(index),
                " under the policy unfrag: use --policy torch, or move tensors by way of the CPU");
    int before = 0;
    C10_CUDA_CHECK(cudaGetDevice(&before));
    C10_CUDA_CHECK(cudaSetDevice(index));
    cudaError_t result = cudaDeviceEnablePeerAccess(other, 0);
    C10_CUDA_CHECK(cudaSetDevice(before));
    if (result == cudaErrorPeerAccessAlreadyEnabled) {
        (void)cudaGetLastError(); /* it is no error, and must not be found by the next check */
    } else {
        C10_CUDA_CHECK(result);
    }
}

cudaError_t Allocator::memcpyAsync(void *dst, int dst_device, const void *src, int src_device,
                                   size_t count, cudaStream_t stream, bool is_peer_enabled)
{
    if (is_peer_enabled || dst_device == src_device) {
        return cudaMemcpyAsync(dst, src, count, cudaMemcpyDeviceToDevice, stream);
    }
    return cudaMemcpyPeerAsync(dst, dst_device, src, src_device, count, stream);
}

std::vector<cca::StreamSegmentSize> Allocator::getExpandableSegmentSizes(c10::DeviceIndex index)
{
    std::vector<cca::StreamSegmentSize> sizes;
    Device *on = device_if_made(index);
    if (on == nullptr) {
        return sizes;
    }
    for (const Segment &segment : walk_segments(*on)) {
        if (segment.is_expandable) {
            sizes.emplace_back(stream_from<cudaStream_t>(static_cast<uint64_t>(
                                   reinterpret_cast<uintptr_t>(segment.stream))),
                               !segment.is_large, segment.total_size);
        }
    }
    return sizes;
}

uf_status Allocator::conf_set(const char *conf, uf_error *error)
{
    std::lock_guard<std::mutex> lock(mutex_);
    for (int index = 0; index < DEVICES_MOST; index++) {
        Device *on = device_if_made(index);
        uf_status status = on != nullptr ? uf_conf_set(on->allocator(), conf, error) : UF_OK;
        if (status != UF_OK) {
            return status;
        }
    }
    settings_.conf = conf;
    return UF_OK;
}

} // namespace unfrag
