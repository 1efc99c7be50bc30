/* SPDX-License-Identifier: MIT
 *
 * See device.h. The back end's functions are handed to the allocator as they are, but for the three
 * that take memory from an address: PyTorch promises trackers (NCCL's registration is one) to tell
 * them before that happens. */
#include "device.h"

#include <array>
#include <cstdlib>
#include <cstring>

#include <unfrag/monitor.h>

#if __has_include(<unfrag/cuda.h>)
#include <unfrag/cuda.h>
#define UF_TORCH_HAS_CUDA 1
#else
#define UF_TORCH_HAS_CUDA 0
#endif

namespace unfrag {

void expect(uf_status status, const uf_error &error, const char *call)
{
    TORCH_CHECK(status == UF_OK, "unfrag: ", call, ": ", error.text);
}

#if UF_TORCH_HAS_CUDA
static bool make_cuda(int index, uf_policy wanted, BackEnd *result, std::string *why)
{
    uf_cuda_options options{};
    options.struct_size_bytes = sizeof options;
    options.ordinal = index;
    uf_cuda *cuda = nullptr;
    uf_error error{};
    if (uf_cuda_create(&options, &cuda, &error) != UF_OK) {
        *why = error.text;
        return false;
    }
    uf_cuda_info info{};
    info.struct_size_bytes = sizeof info;
    if (uf_cuda_info_get(cuda, &info) == UF_OK) {
        result->policy = wanted == UF_POLICY_TORCH ? wanted : info.policy;
        if (result->policy != wanted) {
            result->note = info.note;
        }
    }
    result->device = uf_cuda_device(cuda);
    return true;
}
#else
static bool make_cuda(int, uf_policy, BackEnd *, std::string *why)
{
    *why = "this build of unfrag has no back end for CUDA";
    return false;
}
#endif

static BackEndMaker maker = make_cuda;

void back_end_maker_set(BackEndMaker other)
{
    maker = other != nullptr ? other : make_cuda;
}

/* Every allocator is seen by `unfrag top`; a page that cannot be made is no reason to fail. */
static std::mutex pages_mutex;
static std::vector<uf_monitor *> pages;

static void close_pages()
{
    std::lock_guard<std::mutex> lock(pages_mutex);
    for (uf_monitor *page : pages) {
        uf_monitor_close(page);
    }
    pages.clear();
}

static void open_page(uf_allocator *allocator)
{
    const char *chosen = std::getenv("UNFRAG_MONITOR");
    if (chosen != nullptr && std::strcmp(chosen, "0") == 0) {
        return;
    }
    uf_monitor_options options{};
    options.struct_size_bytes = sizeof options;
    options.allocator = allocator;
    uf_monitor *page = nullptr;
    if (uf_monitor_open(&options, &page, nullptr) == UF_OK) {
        std::lock_guard<std::mutex> lock(pages_mutex);
        if (pages.empty()) {
            std::atexit(close_pages);
        }
        pages.push_back(page);
    }
}

/* The functions of a device get its context and nothing else: the GPU is found by that. Entries are
 * made once and never taken back. */
struct Wrapped {
    void *context;
    const uf_device *inner;
    Device *device;
};
static constexpr size_t WRAPPED_MOST = 128;
static std::array<Wrapped, WRAPPED_MOST> wrapped;
static std::atomic<size_t> wrapped_count{0};

static const Wrapped &wrapped_of(void *context)
{
    size_t count = wrapped_count.load(std::memory_order_acquire);
    for (size_t i = count; i > 0; i--) {
        if (wrapped[i - 1].context == context) {
            return wrapped[i - 1];
        }
    }
    return wrapped[0]; /* cannot be: wrap() has entered it */
}

static uf_status destroy_segment(void *context, uint64_t addr, uint64_t size_bytes)
{
    const Wrapped &entry = wrapped_of(context);
    entry.device->history.announce(Trace::SEGMENT_FREE, addr, size_bytes, 0);
    return entry.inner->segment_destroy(context, addr, size_bytes);
}

static uf_status unmap_pages(void *context, uint64_t addr, uint64_t size_bytes, uint64_t page_bytes)
{
    const Wrapped &entry = wrapped_of(context);
    entry.device->history.announce(Trace::SEGMENT_UNMAP, addr, size_bytes, 0);
    return entry.inner->pages_unmap(context, addr, size_bytes, page_bytes);
}

static uf_status unmap_range(void *context, uint64_t addr, uint64_t size_bytes,
                             uint64_t handle_count)
{
    const Wrapped &entry = wrapped_of(context);
    entry.device->history.announce(Trace::SEGMENT_UNMAP, addr, size_bytes, 0);
    return entry.inner->range_unmap(context, addr, size_bytes, handle_count);
}

void Device::wrap()
{
    size_t count = wrapped_count.load();
    TORCH_CHECK(count < WRAPPED_MOST, "unfrag: more than ", WRAPPED_MOST, " devices");
    wrapped[count] = {back_end_.device->context, back_end_.device, this};
    wrapped_count.store(count + 1, std::memory_order_release);
    functions_ = *back_end_.device;
    functions_.segment_destroy = destroy_segment;
    if (functions_.pages_unmap != nullptr) {
        functions_.pages_unmap = unmap_pages;
    }
    if (functions_.range_unmap != nullptr) {
        functions_.range_unmap = unmap_range;
    }
}

void Device::on_event(void *device, const uf_allocator_event *event)
{
    if (event->action == UF_ACTION_OOM) {
        caller().oom_bytes = event->size_bytes;
    }
    History &history = static_cast<Device *>(device)->history;
    if (C10_UNLIKELY(history.is_wanted())) {
        history.note(*event);
    }
}

Device::Device(int number, const Settings &settings)
    : index(number), history(static_cast<c10::DeviceIndex>(number)), pools(&allocator_),
      policy_(settings.policy)
{
    std::string why;
    TORCH_CHECK(maker(number, settings.policy, &back_end_, &why), "unfrag: GPU ", number,
                " cannot be opened: ", why,
                "; UNFRAG_DISABLE=1 leaves PyTorch's own allocator in place");
    policy_ = back_end_.policy;
    wrap();
    uint64_t free_bytes = 0;
    (void)!back_end_.device->memory_info(back_end_.device->context, &free_bytes, &total_bytes_);
    uf_allocator_options options{};
    options.struct_size_bytes = sizeof options;
    options.device = &functions_;
    options.device_index = number;
    options.policy = policy_;
    options.conf = settings.conf.empty() ? nullptr : settings.conf.c_str();
    options.limit_bytes = settings.limit_bytes;
    options.fraction = settings.limit_bytes != 0 ? 0 : settings.fraction;
    /* PyTorch's own allocator forgives a tensor that another stream uses without record_stream. */
    options.is_every_stream_watched = true;
    options.is_limit_spared = true;
    options.on_event = on_event;
    options.event_context = this;
    uf_error error{};
    expect(uf_allocator_create(&options, &allocator_, &error), error, "making an allocator");
    open_page(allocator_);
    if (settings.limit_bytes != 0) {
        limit_bytes_ = settings.limit_bytes;
    } else if (settings.fraction > 0) {
        limit_changed(settings.fraction);
    }
}

uint64_t Device::free_bytes() const
{
    uint64_t free_bytes = 0, total_bytes = 0;
    uf_status status =
        back_end_.device->memory_info(back_end_.device->context, &free_bytes, &total_bytes);
    return status == UF_OK ? free_bytes : 0;
}

void Device::limit_changed(double fraction)
{
    limit_bytes_ = fraction < 1
                       ? static_cast<uint64_t>(fraction * static_cast<double>(total_bytes_))
                       : NO_LIMIT;
}

double Device::fraction() const
{
    uint64_t limit = limit_bytes_;
    return limit == NO_LIMIT || total_bytes_ == 0
               ? 1.0
               : static_cast<double>(limit) / static_cast<double>(total_bytes_);
}

uint64_t Device::limit_bytes() const
{
    return limit_bytes_;
}

} // namespace unfrag
