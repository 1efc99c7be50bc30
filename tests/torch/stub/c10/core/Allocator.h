/* SPDX-License-Identifier: MIT
 *
 * Stands in for c10's header of this name: pointers with a deleter, and what an allocator of any
 * device has. */
#ifndef STUB_C10_CORE_ALLOCATOR_H
#define STUB_C10_CORE_ALLOCATOR_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include <c10/util/Exception.h>

namespace c10 {

using DeviceIndex = int8_t;
enum class DeviceType : int8_t { CPU = 0, CUDA = 1 };
constexpr DeviceType kCUDA = DeviceType::CUDA;

class Device {
  public:
    Device(DeviceType type, DeviceIndex index = -1) : type_(type), index_(index)
    {
    }
    DeviceIndex index() const
    {
        return index_;
    }
    DeviceType type() const
    {
        return type_;
    }

  private:
    DeviceType type_;
    DeviceIndex index_;
};

using DeleterFnPtr = void (*)(void *);

class DataPtr {
  public:
    DataPtr(void *data, void *context, DeleterFnPtr deleter, Device device)
        : data_(data), context_(context, deleter), device_(device)
    {
    }
    void *get() const
    {
        return data_;
    }
    DeleterFnPtr get_deleter() const
    {
        return context_.get_deleter();
    }
    Device device() const
    {
        return device_;
    }

  private:
    void *data_;
    std::unique_ptr<void, DeleterFnPtr> context_;
    Device device_;
};

struct Allocator {
    virtual ~Allocator() = default;
    virtual DataPtr allocate(size_t bytes) = 0;
    virtual DeleterFnPtr raw_deleter() const
    {
        return nullptr;
    }
    virtual void copy_data(void *dest, const void *src, std::size_t count) const = 0;
};

struct GatheredContext {
    virtual ~GatheredContext() = default;
};

void SetAllocator(DeviceType type, Allocator *allocator, uint8_t priority = 0);
bool memoryProfilingEnabled();
void reportMemoryUsageToProfiler(void *pointer, int64_t bytes, size_t allocated_bytes,
                                 size_t reserved_bytes, Device device);
void reportOutOfMemoryToProfiler(int64_t bytes, size_t allocated_bytes, size_t reserved_bytes,
                                 Device device);

} // namespace c10

namespace at {
using c10::DataPtr;
}

#endif
