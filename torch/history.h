/* SPDX-License-Identifier: MIT
 *
 * One device's history as PyTorch keeps it: the ring of events, the stacks of live blocks and
 * segments, and who else is told of events. Owns no allocator. Guards itself; its mutex is taken
 * inside the allocator's, never the other way round. */
#ifndef UF_TORCH_HISTORY_H
#define UF_TORCH_HISTORY_H

#include <atomic>
#include <deque>
#include <mutex>
#include <unordered_map>
#include <vector>

#include <unfrag/unfrag.h>

#include "interface.h"

namespace unfrag {

/* What the calling thread was doing when it entered the allocator: the callback, which comes on the
 * same thread, attaches it to the events of that call. */
struct Caller {
    Context context;
    PoolId pool{0, 0};
    uint64_t oom_bytes = 0; /* of the newest failure's event */
};
Caller &caller();

/* Texts that PyTorch keeps by thread. */
std::vector<std::string> &compile_contexts();
std::string &user_metadata();

struct HistoryOptions {
    bool is_enabled = false;
    cca::CreateContextFn recorder = nullptr;
    size_t max_entry_count = 1;
    cca::RecordContext when = cca::RecordContext::NEVER;
    bool is_clearing = false;
    uint32_t skipped_actions = 0; /* a bit for each Trace::Action */
};

class History {
  public:
    explicit History(c10::DeviceIndex device) : device_(device)
    {
    }

    void set(const HistoryOptions &options);
    bool is_enabled() const
    {
        return is_enabled_.load(std::memory_order_relaxed);
    }
    /* Does anybody look? If not, a call into the allocator leaves nothing for its events. */
    bool is_wanted() const
    {
        return is_wanted_.load(std::memory_order_relaxed);
    }
    void attach(cca::AllocatorTraceTracker tracker);

    /* A stack, if stacks are kept at that level; outside every lock, since it may need Python's. */
    Context gather(cca::RecordContext level) const;

    /* The allocator's callback. */
    void note(const uf_allocator_event &event);

    /* Memory is about to leave its address: trackers hear of it before it happens, the ring when
     * the allocator says it has. */
    void announce(Trace::Action action, uint64_t addr, uint64_t size_bytes, uint64_t stream);

    std::vector<Trace> entries() const;
    Context block_context(uint64_t addr) const;
    Context segment_context(uint64_t addr) const;
    /* A snapshot was taken: later ones show it. */
    void note_snapshot(uint64_t active_bytes);

  private:
    Context context_of_locked(const uf_allocator_event &event);
    void tell_locked(const Trace &entry);
    void keep_locked(Trace entry);
    Trace entry_of(Trace::Action action, uint64_t addr, uint64_t size_bytes, uint64_t stream,
                   Context context) const;
    void refresh_locked();

    const c10::DeviceIndex device_;
    std::atomic<bool> is_enabled_{false};
    std::atomic<bool> is_wanted_{false}; /* recording, trackers, or stacks of live blocks */
    std::atomic<bool> has_trackers_{false};
    std::atomic<int> when_{0};
    std::atomic<cca::CreateContextFn> recorder_{nullptr};
    mutable std::mutex mutex_; /* what follows */
    size_t max_entry_count_ = 1;
    uint32_t skipped_actions_ = 0;
    std::deque<Trace> ring_;
    std::unordered_map<uint64_t, Context> block_contexts_, segment_contexts_;
    std::vector<cca::AllocatorTraceTracker> trackers_;
};

int64_t unix_time_us();

} // namespace unfrag

#endif
