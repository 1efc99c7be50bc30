/* SPDX-License-Identifier: MIT
 *
 * Limits, statistics, history and snapshots of the interface (allocator.h). */
#include "allocator.h"

namespace unfrag {

double Allocator::getMemoryFraction(c10::DeviceIndex index)
{
    return device(index).fraction();
}

void Allocator::setMemoryFraction(double fraction, c10::DeviceIndex index)
{
    TORCH_CHECK_VALUE(0 <= fraction && fraction <= 1, "invalid fraction:", fraction,
                      ". Please set within [0, 1].");
    Device &on = device(index);
    uf_error error{};
    expect(uf_fraction_set(on.allocator(), fraction, &error), error,
           "set_per_process_memory_fraction");
    on.limit_changed(fraction);
}

template <class Stat> static void fill_stat(Stat &result, const uf_stat &stat)
{
    result.current = stat.current;
    result.peak = stat.peak;
    result.allocated = stat.allocated;
    result.freed = stat.freed;
}

template <class Group> static void fill_group(Group &result, const uf_stat_group &group)
{
    fill_stat(result[0], group.all);
    fill_stat(result[1], group.small_pool);
    fill_stat(result[2], group.large_pool);
}

Stats Allocator::getDeviceStats(c10::DeviceIndex index)
{
    Stats result{};
    Device *on = device_if_made(index);
    if (on == nullptr || is_forked()) {
        result.max_split_size = -1;
        return result;
    }
    uf_stats stats{};
    uf_error error{};
    expect(uf_stats_get(on->allocator(), &stats, &error), error, "memory_stats");
#define FILL_GROUP(name, unit, text) fill_group(result.name, stats.name);
    UF_STATS_GROUP_LIST(FILL_GROUP)
#undef FILL_GROUP
#define FILL_STAT(name, unit, text) fill_stat(result.name, stats.name);
    UF_STATS_OVERSIZE_LIST(FILL_STAT)
#undef FILL_STAT
#define FILL_COUNTER(name, unit, text) result.name = stats.name;
    UF_STATS_COUNTER_LIST(FILL_COUNTER)
#undef FILL_COUNTER
    return result;
}

void Allocator::resetAccumulatedStats(c10::DeviceIndex index)
{
    Device *on = device_if_made(index);
    if (on != nullptr) {
        uf_error error{};
        expect(uf_stats_reset_accumulated(on->allocator(), &error), error,
               "reset_accumulated_memory_stats");
    }
}

void Allocator::resetPeakStats(c10::DeviceIndex index)
{
    Device *on = device_if_made(index);
    if (on != nullptr) {
        uf_error error{};
        expect(uf_stats_reset_peak(on->allocator(), &error), error, "reset_peak_memory_stats");
    }
}

struct Walk {
    Device *on;
    std::vector<Segment> segments;
};

static Block block_of(const Device &on, const uf_block_info &info)
{
    Block block{};
    block.size = info.size_bytes;
    block.requested_size = info.requested_bytes;
    block.allocated = info.state == UF_BLOCK_ACTIVE_ALLOCATED;
    block.active = info.state != UF_BLOCK_INACTIVE;
    if (block.active) {
        block.context_when_allocated = on.history.block_context(info.addr);
    }
    return block;
}

static bool add_segment(void *context, const uf_segment_info *info, const uf_block_info *blocks)
{
    auto *walk = static_cast<Walk *>(context);
    Segment segment{};
    segment.device = static_cast<c10::DeviceIndex>(walk->on->index);
    segment.address = info->addr;
    segment.total_size = info->total_bytes;
    segment.requested_size = info->requested_bytes;
    segment.allocated_size = info->allocated_bytes;
    segment.active_size = info->active_bytes;
    segment.stream = stream_from<decltype(segment.stream)>(info->stream);
    segment.is_large = info->is_large;
    segment.is_expandable = info->is_expandable;
    segment.owner_private_pool_id = {info->pool_id[0], info->pool_id[1]};
    segment.context_when_allocated = walk->on->history.segment_context(info->addr);
    segment.blocks.reserve(info->block_count);
    for (uint32_t i = 0; i < info->block_count; i++) {
        segment.blocks.push_back(block_of(*walk->on, blocks[i]));
    }
    walk->segments.push_back(std::move(segment));
    return true;
}

std::vector<Segment> walk_segments(Device &on)
{
    Walk walk{&on, {}};
    uf_error error{};
    expect(uf_walk(on.allocator(), add_segment, &walk, &error), error, "memory_snapshot");
    return std::move(walk.segments);
}

/* The settings that count under our policies are read from the string by the allocator; a snapshot
 * shows the string, and what PyTorch's own options would be without one. */
template <class Info> static void fill_settings(Info &info, const Settings &settings)
{
    info.garbage_collection_threshold = 0;
    info.max_split_size = SIZE_MAX;
    info.pinned_num_register_threads = 1;
    info.expandable_segments = false;
    info.release_lock_on_malloc = false;
    info.pinned_use_host_register = false;
    info.last_allocator_settings = settings.conf;
    info.roundup_power2_divisions.assign(16, 0);
}

Snapshot Allocator::snapshot(PoolId id, bool has_traces)
{
    Snapshot result{};
    fill_settings(result.config_metadata, settings_);
    for (int index = 0; index < DEVICES_MOST; index++) {
        Device *on = device_if_made(index);
        if (on == nullptr) {
            continue;
        }
        uint64_t active_bytes = 0;
        for (Segment &segment : walk_segments(*on)) {
            active_bytes += segment.active_size;
            if (id == PoolId{0, 0} || segment.owner_private_pool_id == id) {
                result.segments.push_back(std::move(segment));
            }
        }
        if (has_traces) {
            result.device_traces.resize(static_cast<size_t>(index) + 1);
            result.device_traces.back() = on->history.entries();
        }
        on->history.note_snapshot(active_bytes);
    }
    std::lock_guard<std::mutex> lock(mutex_);
    result.external_annotations = annotations_;
    return result;
}

Snapshot Allocator::snapshot(PoolId id)
{
    return snapshot(id, true);
}

bool Allocator::isHistoryEnabled()
{
    c10::DeviceIndex index = 0;
    C10_CUDA_CHECK(c10::cuda::GetDevice(&index));
    return device(index).history.is_enabled();
}

static constexpr std::array<const char *, 9> ACTION_NAMES = {
    "alloc",         "free_requested", "free_completed",
    "segment_alloc", "segment_free",   "segment_map",
    "segment_unmap", "snapshot",       "oom"};

static uint32_t action_bits(const std::vector<std::string> &names)
{
    uint32_t bits = 0;
    for (const std::string &name : names) {
        size_t action = 0;
        while (action < ACTION_NAMES.size() && name != ACTION_NAMES[action]) {
            action++;
        }
        TORCH_CHECK(action < ACTION_NAMES.size(), "Unknown TraceEntry action: ", name);
        bits |= 1u << action;
    }
    return bits;
}

void Allocator::recordHistory(bool is_enabled, cca::CreateContextFn recorder, size_t entry_count,
                              cca::RecordContext when, bool is_clearing,
                              const std::vector<std::string> &skipped)
{
    TORCH_CHECK(when == cca::RecordContext::NEVER || recorder != nullptr,
                "unfrag: _record_memory_history: stacks without a recorder of stacks");
    HistoryOptions options{is_enabled, recorder,    entry_count,
                           when,       is_clearing, action_bits(skipped)};
    std::lock_guard<std::mutex> lock(mutex_);
    history_ = options;
    if (is_clearing || !is_enabled) {
        annotations_.clear();
    }
    for (int index = 0; index < DEVICES_MOST; index++) {
        Device *on = device_if_made(index);
        if (on != nullptr) {
            on->history.set(options);
        }
    }
}

void Allocator::recordHistory(bool is_enabled, cca::CreateContextFn recorder, size_t entry_count,
                              cca::RecordContext when, bool is_clearing)
{
    recordHistory(is_enabled, recorder, entry_count, when, is_clearing, {});
}

void Allocator::recordAnnotation(const std::vector<std::pair<std::string, std::string>> &texts)
{
    c10::DeviceIndex index = 0;
    C10_CUDA_CHECK(c10::cuda::GetDevice(&index));
    Annotation annotation(index, c10::approx_time_t{});
    annotation.time_.t_ = unix_time_us();
    for (const auto &text : texts) {
        annotation.recordUserMetadata(text.first, text.second);
    }
    std::lock_guard<std::mutex> lock(mutex_);
    annotations_.push_back(std::move(annotation));
}

void Allocator::pushCompileContext(std::string &text)
{
    compile_contexts().push_back(text);
}

void Allocator::popCompileContext()
{
    if (!compile_contexts().empty()) {
        compile_contexts().pop_back();
    }
}

void Allocator::setUserMetadata(const std::string &text)
{
    user_metadata() = text;
}

std::string Allocator::getUserMetadata()
{
    return user_metadata();
}

void Allocator::attachOutOfMemoryObserver(cca::OutOfMemoryObserver observer)
{
    std::lock_guard<std::mutex> lock(mutex_);
    observers_.push_back(std::move(observer));
}

#if UF_TORCH_VERSION >= 2012
void Allocator::attachOomRejectionObserver(cca::OomRejectionObserver)
{
    /* Nothing is rejected before it is tried here: there is never anything to observe. */
}
#endif

void Allocator::attachAllocatorTraceTracker(cca::AllocatorTraceTracker tracker)
{
    std::lock_guard<std::mutex> lock(mutex_);
    trackers_.push_back(tracker);
    for (int index = 0; index < DEVICES_MOST; index++) {
        Device *on = device_if_made(index);
        if (on != nullptr) {
            on->history.attach(tracker);
        }
    }
}

} // namespace unfrag
