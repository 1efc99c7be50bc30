/* SPDX-License-Identifier: MIT
 *
 * Private pools (see Pools in device.h): PyTorch's names and its order of calls, on the allocator's
 * pools, whose use counts do the rest. */
#include "device.h"

namespace unfrag {

static constexpr const char *ADVICE =
    "; the call is torch.cuda.use_mem_pool or torch.cuda.graph, or what rests on them";

Pools::Pool &Pools::known_locked(PoolId id, const char *call)
{
    auto found = pools_.find(id);
    TORCH_CHECK(found != pools_.end(), "unfrag: ", call, ": there is no pool (", id.first, ", ",
                id.second, ")", ADVICE);
    return found->second;
}

/* Made with a use count of 1, as PyTorch's are by their first use. */
Pools::Pool &Pools::make_locked(PoolId id)
{
    uf_pool_options options{};
    options.struct_size_bytes = sizeof options;
    options.id[0] = id.first;
    options.id[1] = id.second;
    Pool pool;
    uf_error error{};
    expect(uf_pool_create(*allocator_, &options, &pool.number, &error), error, "making a pool");
    return pools_[id] = std::move(pool);
}

void Pools::acquire(PoolId id)
{
    std::lock_guard<std::mutex> lock(mutex_);
    auto found = pools_.find(id);
    if (found == pools_.end()) {
        make_locked(id).use_count = 1;
        return;
    }
    uf_error error{};
    expect(uf_pool_retain(*allocator_, found->second.number, &error), error, "createOrIncrefPool");
    found->second.use_count++;
}

void Pools::release(PoolId id)
{
    std::lock_guard<std::mutex> lock(mutex_);
    Pool &pool = known_locked(id, "releasePool");
    uf_error error{};
    expect(uf_pool_release(*allocator_, pool.number, &error), error, "releasePool");
    if (--pool.use_count == 0) {
        pools_.erase(id);
    }
}

bool Pools::accepts(void *filter, uint64_t stream)
{
    return (*static_cast<Filter *>(filter))(stream_from<cudaStream_t>(stream));
}

void Pools::begin(PoolId id, Filter filter)
{
    std::lock_guard<std::mutex> lock(mutex_);
    auto found = pools_.find(id);
    bool is_new = found == pools_.end();
    Pool &pool = is_new ? make_locked(id) : found->second;
    TORCH_CHECK(!pool.filter, "unfrag: beginAllocateToPool: already recording to mempool_id (",
                id.first, ", ", id.second, ")");
    auto own = std::make_unique<Filter>(std::move(filter));
    uf_error error{};
    expect(uf_route_begin(*allocator_, pool.number, accepts, own.get(), &error), error,
           "beginAllocateToPool");
    pool.filter = std::move(own);
    pool.use_count++;
    if (is_new) { /* the route's use is PyTorch's first */
        expect(uf_pool_release(*allocator_, pool.number, &error), error, "beginAllocateToPool");
    }
}

void Pools::end(PoolId id)
{
    std::lock_guard<std::mutex> lock(mutex_);
    Pool &pool = known_locked(id, "endAllocateToPool");
    uf_error error{};
    expect(uf_route_end(*allocator_, pool.number, &error), error, "endAllocateToPool");
    pool.filter.reset();
}

int Pools::use_count(PoolId id) const
{
    std::lock_guard<std::mutex> lock(mutex_);
    auto found = pools_.find(id);
    return found == pools_.end() ? 0 : found->second.use_count;
}

void Pools::set_no_split(PoolId id)
{
    std::lock_guard<std::mutex> lock(mutex_);
    Pool &pool = known_locked(id, "setNoSplit");
    uf_error error{};
    expect(uf_pool_change(*allocator_, pool.number, true, pool.is_use_on_oom, &error), error,
           "setNoSplit");
    pool.is_no_split = true;
}

void Pools::set_use_on_oom(PoolId id, bool is_on)
{
    std::lock_guard<std::mutex> lock(mutex_);
    auto found = pools_.find(id);
    if (found == pools_.end()) { /* MemPool switches it off as it goes */
        return;
    }
    Pool &pool = found->second;
    uf_error error{};
    expect(uf_pool_change(*allocator_, pool.number, pool.is_no_split, is_on, &error), error,
           "setUseOnOOM");
    pool.is_use_on_oom = is_on;
}

uint64_t Pools::number_of(PoolId id, const char *call)
{
    std::lock_guard<std::mutex> lock(mutex_);
    return known_locked(id, call).number;
}

} // namespace unfrag
