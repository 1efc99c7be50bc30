/* SPDX-License-Identifier: MIT
 *
 * One GPU under the glue: its back end, its allocator, its history and its private pools. Made at
 * the first use of a GPU and kept until the process ends, since tensors may outlive everything
 * else. The allocator guards itself; pools are guarded by the mutex of Pools. */
#ifndef UF_TORCH_DEVICE_H
#define UF_TORCH_DEVICE_H

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <unfrag/unfrag.h>

#include "history.h"
#include "message.h"

namespace unfrag {

/* How allocators are made. */
struct Settings {
    uf_policy policy = UF_POLICY_UNFRAG;
    std::string conf;
    uint64_t limit_bytes = 0; /* 0 = none */
    double fraction = 0;      /* 0 = none */
};

/* Makes the back end of a GPU: the functions, what is known of it, or an error. Tests put another
 * in its place. */
struct BackEnd {
    const uf_device *device = nullptr;
    uf_policy policy = UF_POLICY_TORCH; /* the best that it can do */
    std::string note;                   /* to tell once; empty if nothing is amiss */
};
using BackEndMaker = bool (*)(int index, uf_policy wanted, BackEnd *result, std::string *why);
void back_end_maker_set(BackEndMaker maker);

/* Private pools by PyTorch's names, with its use counts. Scopes are opened and closed as PyTorch
 * begins and ends to allocate to a pool. */
class Pools {
  public:
    using Filter = std::function<bool(cudaStream_t)>;

    explicit Pools(uf_allocator **allocator) : allocator_(allocator)
    {
    }
    void acquire(PoolId id);
    void release(PoolId id);
    void begin(PoolId id, Filter filter);
    void end(PoolId id);
    int use_count(PoolId id) const;
    void set_no_split(PoolId id);
    void set_use_on_oom(PoolId id, bool is_on);
    /* The allocator's name of a pool. */
    uint64_t number_of(PoolId id, const char *call);

  private:
    struct Pool {
        uint64_t number = 0;
        int use_count = 0;
        bool is_no_split = false, is_use_on_oom = false;
        std::unique_ptr<Filter> filter; /* while it is open */
    };
    Pool &known_locked(PoolId id, const char *call);
    Pool &make_locked(PoolId id);
    static bool accepts(void *filter, uint64_t stream);

    uf_allocator **allocator_;
    mutable std::mutex mutex_;
    std::map<PoolId, Pool> pools_;
};

class Device {
  public:
    /* Throws c10::Error with the reason if there can be none. */
    Device(int index, const Settings &settings);

    uf_allocator *allocator() const
    {
        return allocator_;
    }
    uint64_t total_bytes() const
    {
        return total_bytes_;
    }
    uint64_t free_bytes() const;
    uf_policy policy() const
    {
        return policy_;
    }
    const std::string &note() const
    {
        return back_end_.note;
    }
    void limit_changed(double fraction);
    double fraction() const;
    uint64_t limit_bytes() const; /* NO_LIMIT = none */

    const int index;
    History history;
    Pools pools;

  private:
    static void on_event(void *device, const uf_allocator_event *event);
    void wrap();

    BackEnd back_end_;
    uf_device functions_{}; /* the back end's, with those that take memory away announced first */
    uf_policy policy_;
    uf_allocator *allocator_ = nullptr;
    uint64_t total_bytes_ = 0;
    std::atomic<uint64_t> limit_bytes_{NO_LIMIT};
};

/* Throws what PyTorch throws: std::runtime_error by way of c10::Error, with the call's name. */
void expect(uf_status status, const uf_error &error, const char *call);

} // namespace unfrag

#endif
