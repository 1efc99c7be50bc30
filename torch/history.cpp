/* SPDX-License-Identifier: MIT
 *
 * See history.h. The order of what is noted is the allocator's: it calls back under its mutex. */
#include "history.h"

#include <algorithm>
#include <ctime>

namespace unfrag {

Caller &caller()
{
    static thread_local Caller instance;
    return instance;
}

std::vector<std::string> &compile_contexts()
{
    static thread_local std::vector<std::string> instance;
    return instance;
}

std::string &user_metadata()
{
    static thread_local std::string instance;
    return instance;
}

int64_t unix_time_us()
{
    timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return static_cast<int64_t>(now.tv_sec) * 1000000 + now.tv_nsec / 1000;
}

static bool trace_action(uf_action action, Trace::Action *result)
{
    switch (action) {
    case UF_ACTION_ALLOC:
        *result = Trace::ALLOC;
        return true;
    case UF_ACTION_FREE_REQUESTED:
        *result = Trace::FREE_REQUESTED;
        return true;
    case UF_ACTION_FREE_COMPLETED:
        *result = Trace::FREE_COMPLETED;
        return true;
    case UF_ACTION_SEGMENT_ALLOC:
        *result = Trace::SEGMENT_ALLOC;
        return true;
    case UF_ACTION_SEGMENT_FREE:
        *result = Trace::SEGMENT_FREE;
        return true;
    case UF_ACTION_SEGMENT_MAP:
        *result = Trace::SEGMENT_MAP;
        return true;
    case UF_ACTION_SEGMENT_UNMAP:
        *result = Trace::SEGMENT_UNMAP;
        return true;
    case UF_ACTION_SNAPSHOT:
        *result = Trace::SNAPSHOT;
        return true;
    case UF_ACTION_OOM:
        *result = Trace::OOM;
        return true;
    default:
        return false;
    }
}

static bool is_leaving(Trace::Action action)
{
    return action == Trace::SEGMENT_FREE || action == Trace::SEGMENT_UNMAP;
}

void History::set(const HistoryOptions &options)
{
    std::lock_guard<std::mutex> lock(mutex_);
    auto when = options.is_enabled ? options.when : cca::RecordContext::NEVER;
    when_.store(static_cast<int>(when));
    recorder_.store(options.recorder);
    is_enabled_.store(options.is_enabled);
    max_entry_count_ = std::max<size_t>(options.max_entry_count, 1);
    skipped_actions_ = options.skipped_actions;
    if (!options.is_enabled || options.is_clearing) {
        ring_.clear();
    }
    while (ring_.size() > max_entry_count_) {
        ring_.pop_front();
    }
    refresh_locked();
}

void History::attach(cca::AllocatorTraceTracker tracker)
{
    std::lock_guard<std::mutex> lock(mutex_);
    trackers_.push_back(std::move(tracker));
    has_trackers_.store(true);
    refresh_locked();
}

/* Stacks of live blocks outlive the recording, as in PyTorch, and must be forgotten as blocks go.
 */
void History::refresh_locked()
{
    is_wanted_.store(is_enabled() || !trackers_.empty() || !block_contexts_.empty() ||
                     !segment_contexts_.empty());
}

Context History::gather(cca::RecordContext level) const
{
    cca::CreateContextFn recorder = recorder_.load(std::memory_order_relaxed);
    if (when_.load(std::memory_order_relaxed) < static_cast<int>(level) || recorder == nullptr) {
        return nullptr;
    }
    return recorder();
}

Trace History::entry_of(Trace::Action action, uint64_t addr, uint64_t size_bytes, uint64_t stream,
                        Context context) const
{
    bool has_stacks =
        when_.load(std::memory_order_relaxed) >= static_cast<int>(cca::RecordContext::ALLOC);
    const auto &scopes = compile_contexts();
    return trace_entry<Trace>({action, device_, addr, size_bytes, stream, caller().pool,
                               unix_time_us(), has_stacks ? std::move(context) : nullptr,
                               scopes.empty() ? "N/A" : scopes.back(), user_metadata()});
}

Context History::context_of_locked(const uf_allocator_event &event)
{
    Context own = caller().context;
    switch (event.action) {
    case UF_ACTION_ALLOC:
        if (own) {
            block_contexts_[event.addr] = own;
        } else {
            block_contexts_.erase(event.addr);
        }
        return own;
    case UF_ACTION_FREE_REQUESTED:
    case UF_ACTION_FREE_COMPLETED: {
        auto found = block_contexts_.find(event.addr);
        if (!own && found != block_contexts_.end()) {
            own = found->second;
        }
        if (event.action == UF_ACTION_FREE_COMPLETED && found != block_contexts_.end()) {
            block_contexts_.erase(found);
        }
        return own;
    }
    case UF_ACTION_SEGMENT_ALLOC:
    case UF_ACTION_SEGMENT_MAP:
        if (own) {
            segment_contexts_[event.addr] = own;
        }
        return own;
    case UF_ACTION_SEGMENT_FREE:
    case UF_ACTION_SEGMENT_UNMAP: {
        auto found = segment_contexts_.find(event.addr);
        if (found != segment_contexts_.end()) {
            own = own ? own : found->second;
            segment_contexts_.erase(found);
        }
        return own;
    }
    default:
        return own;
    }
}

void History::tell_locked(const Trace &entry)
{
    for (const auto &tracker : trackers_) {
        tracker(entry);
    }
}

void History::keep_locked(Trace entry)
{
    bool is_skipped = (skipped_actions_ >> static_cast<unsigned>(entry.action_)) & 1u;
    if (!is_enabled() || is_skipped) {
        return;
    }
    if (ring_.size() >= max_entry_count_) {
        ring_.pop_front();
    }
    ring_.push_back(std::move(entry));
}

void History::note(const uf_allocator_event &event)
{
    Trace::Action action;
    if (!is_wanted() || !trace_action(event.action, &action)) {
        return;
    }
    std::lock_guard<std::mutex> lock(mutex_);
    Context context = context_of_locked(event);
    Trace entry = entry_of(action, event.addr, event.size_bytes, event.stream, std::move(context));
    if (!is_leaving(action)) { /* of those they heard before */
        tell_locked(entry);
    }
    keep_locked(std::move(entry));
    refresh_locked();
}

void History::announce(Trace::Action action, uint64_t addr, uint64_t size_bytes, uint64_t stream)
{
    if (!has_trackers_.load(std::memory_order_relaxed)) {
        return;
    }
    std::lock_guard<std::mutex> lock(mutex_);
    tell_locked(entry_of(action, addr, size_bytes, stream, nullptr));
}

std::vector<Trace> History::entries() const
{
    std::lock_guard<std::mutex> lock(mutex_);
    return {ring_.begin(), ring_.end()};
}

static Context find_context(const std::unordered_map<uint64_t, Context> &map, uint64_t addr)
{
    auto found = map.find(addr);
    return found == map.end() ? nullptr : found->second;
}

Context History::block_context(uint64_t addr) const
{
    std::lock_guard<std::mutex> lock(mutex_);
    return find_context(block_contexts_, addr);
}

Context History::segment_context(uint64_t addr) const
{
    std::lock_guard<std::mutex> lock(mutex_);
    return find_context(segment_contexts_, addr);
}

void History::note_snapshot(uint64_t active_bytes)
{
    if (!is_enabled()) {
        return;
    }
    std::lock_guard<std::mutex> lock(mutex_);
    keep_locked(entry_of(Trace::SNAPSHOT, 0, active_bytes, 0, nullptr));
}

} // namespace unfrag
