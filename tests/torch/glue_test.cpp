/* SPDX-License-Identifier: MIT
 *
 * The glue over a simulated device and a stub of PyTorch's interface: what PyTorch's callers get
 * and are told. The allocator itself is tested elsewhere. */
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <unfrag/sim.h>

#include "allocator.h"
#include "entry.h"
#include "message.h"
#include "stub.h"

/* Last: it has a macro named fail. */
#include <check.h>

using unfrag::Allocator;
using unfrag::PoolId;
using unfrag::Trace;
namespace cca = c10::cuda::CUDACachingAllocator;

static constexpr uint64_t MIB = UINT64_C(1) << 20, GIB = UINT64_C(1) << 30;

/* What happened, in order: driver calls (by the device below) and what trackers were told. */
static std::vector<std::string> happened;
static const uf_device *inner;
static uf_device noting;

static uf_status note_destroy(void *context, uint64_t addr, uint64_t size_bytes)
{
    happened.push_back("destroy");
    return inner->segment_destroy(context, addr, size_bytes);
}

static uf_status note_unmap(void *context, uint64_t addr, uint64_t size_bytes, uint64_t count)
{
    happened.push_back("unmap");
    return inner->range_unmap(context, addr, size_bytes, count);
}

static bool make_sim(int, uf_policy wanted, unfrag::BackEnd *result, std::string *why)
{
    uf_sim_options options{};
    options.struct_size_bytes = sizeof options;
    options.total_bytes = 8 * GIB;
    uf_sim *sim = nullptr;
    uf_error error{};
    if (uf_sim_create(&options, &sim, &error) != UF_OK) {
        *why = error.text;
        return false;
    }
    inner = uf_sim_device(sim);
    noting = *inner;
    noting.segment_destroy = note_destroy;
    noting.range_unmap = note_unmap;
    result->device = &noting;
    result->policy = wanted;
    return true;
}

static bool make_none(int, uf_policy, unfrag::BackEnd *, std::string *why)
{
    *why = "no GPU here";
    return false;
}

/* Kept for ever, as in a process with PyTorch. */
static Allocator *make(uf_policy policy, uint64_t limit_bytes = 0)
{
    unfrag::back_end_maker_set(make_sim);
    happened.clear();
    unfrag::Settings settings;
    settings.policy = policy;
    settings.limit_bytes = limit_bytes;
    auto *allocator = new Allocator(settings);
    static auto *kept = new std::vector<Allocator *>; /* for ever, and seen by LeakSanitizer */
    kept->push_back(allocator);
    cca::allocator.store(allocator);
    return allocator;
}

static cudaStream_t stream_of(uintptr_t handle)
{
    return reinterpret_cast<cudaStream_t>(handle);
}

struct Stack : c10::GatheredContext {};
static std::shared_ptr<c10::GatheredContext> make_stack()
{
    return std::make_shared<Stack>();
}

static std::string message_of(void (*call)(Allocator *), Allocator *allocator)
{
    try {
        call(allocator);
    } catch (const c10::Error &error) {
        return error.what();
    }
    return "";
}

#define ck_contains(text, part) \
    ck_assert_msg(strstr((text), (part)) != nullptr, "'%s' is not in '%s'", (part), (text))

START_TEST(memory_is_counted_as_pytorch_counts_it)
{
    Allocator *allocator = make(UF_POLICY_TORCH);
    {
        c10::DataPtr small = allocator->allocate(1000), large = allocator->allocate(3 * MIB);
        ck_assert_ptr_nonnull(small.get());
        auto stats = allocator->getDeviceStats(0);
        ck_assert_int_eq(stats.allocation[0].current, 2);
        ck_assert_int_eq(stats.allocated_bytes[0].current, 1024 + 3 * (int64_t)MIB);
        ck_assert_int_eq(stats.allocated_bytes[1].current, 1024);
        ck_assert_int_eq(stats.requested_bytes[0].current, 1000 + 3 * (int64_t)MIB);
        ck_assert_int_eq(stats.reserved_bytes[0].current, 22 * (int64_t)MIB);
        ck_assert_int_eq(stats.segment[2].current, 1);
        ck_assert_int_eq(stats.max_split_size, -1);
    }
    auto stats = allocator->getDeviceStats(0);
    ck_assert_int_eq(stats.allocation[0].current, 0);
    ck_assert_int_eq(stats.allocation[0].peak, 2);
    ck_assert_int_eq(stats.reserved_bytes[0].current, 22 * (int64_t)MIB);
    allocator->resetPeakStats(0);
    allocator->resetAccumulatedStats(0);
    stats = allocator->getDeviceStats(0);
    ck_assert_int_eq(stats.allocation[0].peak, 0);
    ck_assert_int_eq(stats.allocation[0].freed, 0);
    allocator->emptyCache();
    ck_assert_int_eq(allocator->getDeviceStats(0).reserved_bytes[0].current, 0);
    ck_assert_int_eq(allocator->getDeviceStats(5).allocation[0].allocated, 0);
}
END_TEST

START_TEST(nothing_is_asked_for_zero_bytes)
{
    Allocator *allocator = make(UF_POLICY_UNFRAG);
    c10::DataPtr nothing = allocator->allocate(0);
    ck_assert_ptr_null(nothing.get());
    ck_assert_ptr_null(allocator->raw_alloc(0));
    allocator->raw_delete(nullptr);
    ck_assert_ptr_null(allocator->device_if_made(0));
}
END_TEST

START_TEST(a_block_of_another_stream_waits_for_it)
{
    Allocator *allocator = make(UF_POLICY_TORCH);
    stub::stream = stream_of(0);
    void *first;
    {
        c10::DataPtr block = allocator->allocate(4 * MIB);
        first = block.get();
        allocator->recordStream(block, c10::cuda::CUDAStream(stream_of(7)));
    }
    auto stats = allocator->getDeviceStats(0);
    ck_assert_int_eq(stats.allocation[0].current, 0);
    ck_assert_int_eq(stats.active[0].current, 1);
    void *second = allocator->raw_alloc_with_stream(4 * MIB, stream_of(0));
    ck_assert_ptr_ne(first, nullptr);
    allocator->raw_delete(second);
}
END_TEST

static void take_3_gib(Allocator *allocator)
{
    allocator->raw_alloc(3 * GIB);
}

START_TEST(an_out_of_memory_error_has_pytorchs_form_and_a_cause)
{
    Allocator *allocator = make(UF_POLICY_TORCH, 2 * GIB);
    std::vector<uint64_t> told;
    allocator->attachOutOfMemoryObserver(
        [&](int64_t device, size_t wanted, size_t most, size_t available) {
            told = {static_cast<uint64_t>(device), wanted, most, available};
        });
    c10::DataPtr held = allocator->allocate(512 * MIB + 5);
    std::string text = message_of(take_3_gib, allocator);
    ck_contains(text.c_str(), "CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has a total "
                              "capacity of 8.00 GiB of which 7.50 GiB is free. 2.00 GiB allowed; "
                              "Of the allocated memory 512.00 MiB is allocated by PyTorch, and "
                              "2.00 MiB is reserved by PyTorch but unallocated.\nunfrag: ");
    ck_contains(text.c_str(), "limit 2.00 GiB");
    ck_assert_uint_eq(told.size(), 4);
    ck_assert_uint_eq(told[1], 3 * GIB);
    ck_assert_uint_eq(told[2], 2 * GIB);
    ck_assert_uint_eq(told[3], 8 * GIB - 514 * MIB);
    ck_assert_int_eq(allocator->getDeviceStats(0).num_ooms, 1);
    ck_assert_int_eq(allocator->getDeviceStats(0).num_alloc_retries, 1);
}
END_TEST

START_TEST(sizes_in_messages_are_written_as_pytorch_writes_them)
{
    ck_assert(unfrag::size_text(1024) == "1024 bytes");
    ck_assert(unfrag::size_text(1025) == "1.00 KiB");
    ck_assert(unfrag::size_text(20 * MIB) == "20.00 MiB");
    ck_assert(unfrag::size_text(GIB) == "1024.00 MiB");
    ck_assert(unfrag::size_text(3 * GIB / 2) == "1.50 GiB");
}
END_TEST

static std::vector<Trace::Action> actions_of(const unfrag::Snapshot &snapshot)
{
    std::vector<Trace::Action> actions;
    for (const Trace &entry : snapshot.device_traces.at(0)) {
        actions.push_back(entry.action_);
    }
    return actions;
}

START_TEST(history_is_kept_with_stacks_and_shown_in_snapshots)
{
    Allocator *allocator = make(UF_POLICY_TORCH);
    allocator->recordHistory(true, make_stack, 100, cca::RecordContext::ALL, false, {});
    allocator->setUserMetadata("step 3");
    std::string scope = "0/0";
    allocator->pushCompileContext(scope);
    c10::DataPtr kept = allocator->allocate(5000);
    allocator->popCompileContext();
    void *gone = allocator->raw_alloc(2 * MIB);
    allocator->raw_delete(gone);
    auto snapshot = allocator->snapshot({0, 0}, true);
    std::vector<Trace::Action> expected = {Trace::SEGMENT_ALLOC,  Trace::ALLOC,
                                           Trace::SEGMENT_ALLOC,  Trace::ALLOC,
                                           Trace::FREE_REQUESTED, Trace::FREE_COMPLETED};
    ck_assert(actions_of(snapshot) == expected);
    const Trace &first = snapshot.device_traces[0][1];
    ck_assert_uint_eq(first.size_, 5000);
    ck_assert_uint_eq(first.addr_, reinterpret_cast<uintptr_t>(kept.get()));
    ck_assert_str_eq(first.compile_context_.c_str(), "0/0");
    ck_assert_str_eq(first.user_metadata_.c_str(), "step 3");
    ck_assert_str_eq(snapshot.device_traces[0][3].compile_context_.c_str(), "N/A");
    ck_assert(first.context_ != nullptr);
    ck_assert_int_gt(first.time_.t_, 1600000000000000);
    ck_assert_uint_eq(snapshot.segments.size(), 2);
    bool is_found = false;
    for (const auto &segment : snapshot.segments) {
        for (const auto &block : segment.blocks) {
            is_found = is_found || (block.allocated && block.requested_size == 5000 &&
                                    block.context_when_allocated == first.context_);
        }
    }
    ck_assert(is_found);
    /* The next one shows that this one was taken; one without traces has none. */
    expected.push_back(Trace::SNAPSHOT);
    ck_assert(actions_of(allocator->snapshot({0, 0}, true)) == expected);
    ck_assert_uint_eq(allocator->snapshot({0, 0}, false).device_traces.size(), 0);
    ck_assert(allocator->isHistoryEnabled());
    allocator->recordHistory(false, nullptr, 1, cca::RecordContext::NEVER, false, {});
    ck_assert(!allocator->isHistoryEnabled());
    ck_assert_uint_eq(allocator->snapshot({0, 0}, true).device_traces.at(0).size(), 0);
}
END_TEST

START_TEST(the_ring_keeps_the_newest_and_leaves_skipped_actions_out)
{
    Allocator *allocator = make(UF_POLICY_TORCH);
    allocator->recordHistory(true, nullptr, 2, cca::RecordContext::NEVER, false,
                             {"free_requested", "segment_alloc"});
    allocator->raw_delete(allocator->raw_alloc(100));
    allocator->raw_delete(allocator->raw_alloc(200));
    auto snapshot = allocator->snapshot({0, 0}, true);
    std::vector<Trace::Action> expected = {Trace::ALLOC, Trace::FREE_COMPLETED};
    ck_assert(actions_of(snapshot) == expected);
    ck_assert_uint_eq(snapshot.device_traces[0][0].size_, 200);
    try {
        allocator->recordHistory(true, nullptr, 2, cca::RecordContext::NEVER, false, {"alloca"});
        ck_abort_msg("an unknown action was accepted");
    } catch (const c10::Error &error) {
        ck_contains(error.what(), "alloca");
    }
}
END_TEST

START_TEST(trackers_hear_before_memory_goes)
{
    for (uf_policy policy : {UF_POLICY_TORCH, UF_POLICY_UNFRAG}) {
        Allocator *allocator = make(policy);
        allocator->attachAllocatorTraceTracker([](const Trace &entry) {
            if (entry.action_ == Trace::SEGMENT_FREE) {
                happened.push_back("told of a free");
            } else if (entry.action_ == Trace::SEGMENT_UNMAP) {
                happened.push_back("told of an unmap");
            }
        });
        allocator->raw_delete(allocator->raw_alloc(64 * MIB));
        happened.clear();
        allocator->emptyCache();
        ck_assert_uint_ge(happened.size(), 2);
        for (size_t i = 0; i + 1 < happened.size(); i += 2) {
            bool is_torch = policy == UF_POLICY_TORCH;
            ck_assert_str_eq(happened[i].c_str(), is_torch ? "told of a free" : "told of an unmap");
            ck_assert_str_eq(happened[i + 1].c_str(), is_torch ? "destroy" : "unmap");
        }
    }
}
END_TEST

START_TEST(a_pool_keeps_its_memory_and_its_name)
{
    Allocator *allocator = make(UF_POLICY_TORCH);
    PoolId id{0, 4};
    allocator->createOrIncrefPool(0, id, std::shared_ptr<cca::CUDAAllocator>());
    ck_assert_int_eq(allocator->getPoolUseCount(0, id), 1);
    allocator->beginAllocateToPool(0, id, [](cudaStream_t) { return true; });
    ck_assert_int_eq(allocator->getPoolUseCount(0, id), 2);
    void *inside = allocator->raw_alloc(3 * MIB);
    allocator->endAllocateToPool(0, id);
    allocator->releasePool(0, id);
    ck_assert_int_eq(allocator->getPoolUseCount(0, id), 1);
    void *outside = allocator->raw_alloc(3 * MIB);
    auto all = allocator->snapshot({0, 0}, false), own = allocator->snapshot(id, false);
    ck_assert_uint_eq(all.segments.size(), 2);
    ck_assert_uint_eq(own.segments.size(), 1);
    ck_assert(own.segments[0].owner_private_pool_id == id);
    ck_assert(allocator->checkPoolLiveAllocations(0, id, {inside}));
    ck_assert(!allocator->checkPoolLiveAllocations(0, id, {outside}));
    ck_assert(!allocator->checkPoolLiveAllocations(0, id, {inside, outside}));
    allocator->raw_delete(inside);
    allocator->emptyCache();
    ck_assert_uint_eq(allocator->snapshot(id, false).segments.size(), 1);
    allocator->releasePool(0, id); /* the last */
    ck_assert_int_eq(allocator->getPoolUseCount(0, id), 0);
    allocator->emptyCache();
    ck_assert_uint_eq(allocator->snapshot(id, false).segments.size(), 0);
    allocator->raw_delete(outside);
}
END_TEST

START_TEST(a_pool_that_ends_inside_another_scope_goes_later)
{
    Allocator *allocator = make(UF_POLICY_TORCH);
    PoolId first{0, 1}, second{7, 0};
    allocator->beginAllocateToPool(0, first, [](cudaStream_t) { return true; });
    allocator->raw_delete(allocator->raw_alloc(3 * MIB));
    allocator->endAllocateToPool(0, first);
    ck_assert_int_eq(allocator->getPoolUseCount(0, first), 1);
    allocator->beginAllocateToPool(0, second, [](cudaStream_t) { return true; });
    allocator->releasePool(0, first);
    ck_assert_int_eq(allocator->getDeviceStats(0).reserved_bytes[0].current, 20 * (int64_t)MIB);
    allocator->endAllocateToPool(0, second);
    allocator->releasePool(0, second);
    allocator->emptyCache();
    ck_assert_int_eq(allocator->getDeviceStats(0).reserved_bytes[0].current, 0);
}
END_TEST

START_TEST(a_capture_takes_its_streams_requests_from_every_thread)
{
    for (uf_policy policy : {UF_POLICY_TORCH, UF_POLICY_UNFRAG}) {
        Allocator *allocator = make(policy);
        PoolId id{3, 0};
        allocator->beginAllocateToPool(0, id,
                                       [](cudaStream_t stream) { return stream == stream_of(9); });
        void *inside = nullptr;
        std::thread([&] {
            inside = allocator->raw_alloc_with_stream(3 * MIB, stream_of(9));
        }).join();
        void *outside = allocator->raw_alloc_with_stream(3 * MIB, stream_of(0));
        allocator->endAllocateToPool(0, id);
        ck_assert(allocator->checkPoolLiveAllocations(0, id, {inside}));
        allocator->raw_delete(inside);
        allocator->raw_delete(outside);
        allocator->releasePool(0, id);
        allocator->emptyCache();
        ck_assert_int_eq(allocator->getDeviceStats(0).reserved_bytes[0].current, 0);
    }
}
END_TEST

START_TEST(a_pool_goes_back_to_a_checkpoint)
{
    for (uf_policy policy : {UF_POLICY_TORCH, UF_POLICY_UNFRAG}) {
        Allocator *allocator = make(policy);
        PoolId id{1, 0};
        allocator->beginAllocateToPool(0, id, [](cudaStream_t) { return true; });
        void *first = allocator->raw_alloc(3 * MIB);
        auto state = allocator->getCheckpointState(0, id);
        void *second = allocator->raw_alloc(5 * MIB);
        allocator->raw_delete(first);
        allocator->endAllocateToPool(0, id);
        auto delta = allocator->setCheckpointPoolState(0, state);
        ck_assert_uint_eq(delta.ptrs_freed.size(), 1);
        ck_assert_ptr_eq(delta.ptrs_freed[0], second);
        ck_assert_uint_eq(delta.dataptrs_allocd.size(), 1);
        ck_assert_ptr_eq(delta.dataptrs_allocd[0].get(), first);
        ck_assert(allocator->checkPoolLiveAllocations(0, id, {first}));
        delta.dataptrs_allocd.clear();
        ck_assert(allocator->checkPoolLiveAllocations(0, id, {}));
        allocator->releasePool(0, id);
    }
}
END_TEST

static void share(Allocator *allocator)
{
    allocator->shareIpcHandle(nullptr);
}

static void give_access(Allocator *allocator)
{
    allocator->enablePeerAccess(0, 1);
}

static void pool_with_own_allocator(Allocator *allocator)
{
    allocator->createOrIncrefPool(0, {0, 1}, allocator);
}

static void fraction_of_two(Allocator *allocator)
{
    allocator->setMemoryFraction(2, 0);
}

START_TEST(what_is_missing_is_named_with_a_way_out)
{
    Allocator *allocator = make(UF_POLICY_UNFRAG);
    ck_contains(message_of(share, allocator).c_str(), "tensor.cpu()");
    ck_contains(message_of(give_access, allocator).c_str(), "--policy torch");
    ck_contains(message_of(pool_with_own_allocator, allocator).c_str(), "torch.cuda.MemPool()");
    ck_contains(message_of(fraction_of_two, allocator).c_str(), "invalid fraction:2");
}
END_TEST

START_TEST(a_fraction_is_a_limit_and_one_is_none)
{
    Allocator *allocator = make(UF_POLICY_UNFRAG);
    ck_assert_double_eq(allocator->getMemoryFraction(0), 1.0);
    allocator->setMemoryFraction(0.25, 0);
    ck_assert_double_eq(allocator->getMemoryFraction(0), 0.25);
    ck_contains(message_of(take_3_gib, allocator).c_str(), "2.00 GiB allowed");
    allocator->setMemoryFraction(0, 0); /* nothing at all, as in PyTorch */
    ck_assert_double_eq(allocator->getMemoryFraction(0), 0);
    ck_contains(message_of(take_3_gib, allocator).c_str(), "0 bytes allowed");
    allocator->setMemoryFraction(1.0, 0);
    void *pointer = allocator->raw_alloc(3 * GIB);
    ck_assert_ptr_nonnull(pointer);
    allocator->raw_delete(pointer);
}
END_TEST

START_TEST(cache_info_gives_the_largest_block_or_what_is_left)
{
    Allocator *allocator = make(UF_POLICY_TORCH, 2 * GIB);
    allocator->raw_delete(allocator->raw_alloc(300 * MIB));
    size_t largest = 0;
    allocator->cacheInfo(0, &largest);
    ck_assert_uint_eq(largest, 2 * GIB - 300 * MIB);
    largest = 1;
    allocator->cacheInfo(0, &largest);
    ck_assert_uint_eq(largest, 300 * MIB);
}
END_TEST

START_TEST(the_profiler_is_told_of_memory)
{
    Allocator *allocator = make(UF_POLICY_TORCH);
    stub::reports.clear();
    stub::is_profiling = true;
    allocator->raw_delete(allocator->raw_alloc(1024));
    stub::is_profiling = false;
    ck_assert_uint_eq(stub::reports.size(), 2);
    ck_assert_int_eq(stub::reports[0].bytes, 1024);
    ck_assert_uint_eq(stub::reports[0].allocated_bytes, 1024);
    ck_assert_int_eq(stub::reports[1].bytes, -1024);
    ck_assert_uint_eq(stub::reports[1].allocated_bytes, 0);
}
END_TEST

START_TEST(a_child_made_by_fork_gives_back_nothing_and_gets_nothing)
{
    unfrag::watch_forks();
    Allocator *allocator = make(UF_POLICY_UNFRAG);
    void *pointer = allocator->raw_alloc(MIB);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        allocator->raw_delete(pointer);
        allocator->emptyCache();
        bool is_refused = false;
        stub::device = 1; /* one that the parent did not open */
        try {
            allocator->raw_alloc(MIB);
        } catch (const c10::Error &error) {
            is_refused = strstr(error.what(), "forked subprocess") != nullptr;
        }
        _exit(is_refused ? 0 : 1);
    }
    int status = -1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(WEXITSTATUS(status), 0);
    ck_assert_int_eq(allocator->getDeviceStats(0).allocation[0].current, 1);
    allocator->raw_delete(pointer);
}
END_TEST

START_TEST(a_child_made_by_fork_before_there_is_a_gpu_may_begin)
{
    unfrag::watch_forks();
    Allocator *allocator = make(UF_POLICY_UNFRAG);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        void *pointer = allocator->raw_alloc(MIB);
        _exit(pointer != nullptr ? 0 : 1);
    }
    int status = -1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(WEXITSTATUS(status), 0);
    allocator->raw_delete(allocator->raw_alloc(MIB));
}
END_TEST

static void take_1_mib(Allocator *allocator)
{
    allocator->raw_alloc(MIB);
}

START_TEST(a_gpu_that_cannot_be_opened_says_why)
{
    Allocator *allocator = make(UF_POLICY_UNFRAG);
    unfrag::back_end_maker_set(make_none);
    std::string text = message_of(take_1_mib, allocator);
    ck_contains(text.c_str(), "no GPU here");
    ck_contains(text.c_str(), "UNFRAG_DISABLE=1");
}
END_TEST

START_TEST(it_is_installed_once_and_before_cuda_starts)
{
    unfrag::back_end_maker_set(make_sim);
    Allocator *before = make(UF_POLICY_TORCH);
    before->init(1);
    char error[300] = "";
    ck_assert_int_eq(uf_torch_install("unfrag", nullptr, 0, 0, error, sizeof error), 1);
    ck_contains(error, "CUDA is in use already");
    ck_assert_int_eq(uf_torch_is_active(), 0);
    ck_assert_ptr_null(uf_torch_allocator(0, error, sizeof error));

    static Allocator other({}); /* not initialised */
    cca::allocator.store(&other);
    ck_assert_int_eq(uf_torch_install("stock", "", 0, 0, error, sizeof error), 3);
    ck_assert_int_eq(uf_torch_install("unfrag", "", GIB, 0, error, sizeof error), 0);
    auto *installed = dynamic_cast<Allocator *>(cca::get());
    ck_assert_ptr_nonnull(installed);
    ck_assert_int_eq(installed->settings().policy, UF_POLICY_UNFRAG);
    ck_assert_int_eq(uf_torch_is_active(), 1);
    ck_assert_ptr_eq(stub::registered, cca::get());
    ck_assert(cca::get()->name() == "unfrag");
    ck_assert_int_eq(uf_torch_version(), UF_TORCH_VERSION);
    ck_assert_uint_eq(uf_torch_devices(), 0);
    ck_assert_ptr_nonnull(uf_torch_allocator(0, error, sizeof error));
    ck_assert_uint_eq(uf_torch_devices(), 1);
    ck_assert_int_eq(uf_torch_conf_set("nonsense:1", error, sizeof error), 1);
    ck_contains(error, "nonsense");
    ck_assert_int_eq(uf_torch_install("unfrag", nullptr, 0, 0, error, sizeof error), 2);
    /* A tensor that lives until the process ends is no trouble. */
    static c10::DataPtr alive = cca::get()->allocate(MIB);
    ck_assert_ptr_nonnull(alive.get());
}
END_TEST

int main()
{
    Suite *suite = suite_create("glue");
    TCase *tests = tcase_create("glue");
    tcase_add_test(tests, memory_is_counted_as_pytorch_counts_it);
    tcase_add_test(tests, nothing_is_asked_for_zero_bytes);
    tcase_add_test(tests, a_block_of_another_stream_waits_for_it);
    tcase_add_test(tests, an_out_of_memory_error_has_pytorchs_form_and_a_cause);
    tcase_add_test(tests, sizes_in_messages_are_written_as_pytorch_writes_them);
    tcase_add_test(tests, history_is_kept_with_stacks_and_shown_in_snapshots);
    tcase_add_test(tests, the_ring_keeps_the_newest_and_leaves_skipped_actions_out);
    tcase_add_test(tests, trackers_hear_before_memory_goes);
    tcase_add_test(tests, a_pool_keeps_its_memory_and_its_name);
    tcase_add_test(tests, a_pool_that_ends_inside_another_scope_goes_later);
    tcase_add_test(tests, a_capture_takes_its_streams_requests_from_every_thread);
    tcase_add_test(tests, a_pool_goes_back_to_a_checkpoint);
    tcase_add_test(tests, what_is_missing_is_named_with_a_way_out);
    tcase_add_test(tests, a_fraction_is_a_limit_and_one_is_none);
    tcase_add_test(tests, cache_info_gives_the_largest_block_or_what_is_left);
    tcase_add_test(tests, the_profiler_is_told_of_memory);
    tcase_add_test(tests, a_child_made_by_fork_gives_back_nothing_and_gets_nothing);
    tcase_add_test(tests, a_child_made_by_fork_before_there_is_a_gpu_may_begin);
    tcase_add_test(tests, a_gpu_that_cannot_be_opened_says_why);
    tcase_add_test(tests, it_is_installed_once_and_before_cuda_starts);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
