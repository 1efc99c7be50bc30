/* SPDX-License-Identifier: MIT
 *
 * See entry.h. Installs the one Allocator: an atomic pointer in libc10_cuda, and the registry that
 * torch.accelerator looks into. */
#include "entry.h"

#include <cstdio>
#include <cstring>
#include <exception>

#include "allocator.h"

using unfrag::Allocator;

static std::atomic<Allocator *> installed{nullptr};

static void tell(char *error, size_t capacity, const char *text)
{
    if (error != nullptr && capacity > 0) {
        std::snprintf(error, capacity, "%s", text);
    }
}

int uf_torch_install(const char *policy, const char *conf, uint64_t limit_bytes, double fraction,
                     char *error, size_t capacity)
{
    namespace cca = c10::cuda::CUDACachingAllocator;
    try {
        if (installed.load() != nullptr) {
            tell(error, capacity, "it is installed already");
            return 2;
        }
        cca::CUDAAllocator *before = cca::allocator.load();
        if (before != nullptr && before->initialized()) {
            tell(error, capacity,
                 "CUDA is in use already (a tensor was moved to the GPU, or torch.cuda.init() was "
                 "called): enable it before that");
            return 1;
        }
        unfrag::Settings settings;
        if (std::strcmp(policy, "unfrag") != 0 && std::strcmp(policy, "torch") != 0) {
            tell(error, capacity, "there is no such policy: unfrag or torch");
            return 3;
        }
        settings.policy = std::strcmp(policy, "unfrag") == 0 ? UF_POLICY_UNFRAG : UF_POLICY_TORCH;
        settings.conf = conf != nullptr ? conf : "";
        settings.limit_bytes = limit_bytes;
        settings.fraction = fraction;
        unfrag::watch_forks();
        auto *allocator = new Allocator(std::move(settings));
        cca::allocator.store(allocator);
        c10::SetAllocator(c10::DeviceType::CUDA, allocator, UINT8_MAX);
        installed.store(allocator);
        return 0;
    } catch (const std::exception &problem) {
        tell(error, capacity, problem.what());
        return 3;
    }
}

int uf_torch_is_active(void)
{
    Allocator *own = installed.load();
    return own != nullptr && c10::cuda::CUDACachingAllocator::allocator.load() == own;
}

int uf_torch_version(void)
{
    return UF_TORCH_VERSION;
}

uf_allocator *uf_torch_allocator(int device, char *error, size_t capacity)
{
    try {
        Allocator *own = installed.load();
        if (own == nullptr) {
            tell(error, capacity, "unfrag's allocator is not installed");
            return nullptr;
        }
        return own->device(device).allocator();
    } catch (const c10::Error &problem) {
        tell(error, capacity, problem.what_without_backtrace());
    } catch (const std::exception &problem) {
        tell(error, capacity, problem.what());
    }
    return nullptr;
}

uint64_t uf_torch_devices(void)
{
    Allocator *own = installed.load();
    uint64_t bits = 0;
    for (int i = 0; own != nullptr && i < 64; i++) {
        bits |= own->device_if_made(i) != nullptr ? UINT64_C(1) << i : 0;
    }
    return bits;
}

int uf_torch_conf_set(const char *conf, char *error, size_t capacity)
{
    Allocator *own = installed.load();
    uf_error problem{};
    if (own == nullptr) {
        tell(error, capacity, "unfrag's allocator is not installed");
        return 1;
    }
    if (own->conf_set(conf, &problem) != UF_OK) {
        tell(error, capacity, problem.text);
        return 1;
    }
    return 0;
}
