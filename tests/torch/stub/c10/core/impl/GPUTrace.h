/* SPDX-License-Identifier: MIT
 *
 * Stands in for c10's header of this name: nobody traces here. */
#ifndef STUB_C10_CORE_IMPL_GPUTRACE_H
#define STUB_C10_CORE_IMPL_GPUTRACE_H

#include <c10/core/Allocator.h>

namespace c10::impl {

struct StubInterpreterTable {
    void trace_gpu_memory_allocation(DeviceType, uintptr_t) const
    {
    }
    void trace_gpu_memory_deallocation(DeviceType, uintptr_t) const
    {
    }
};

struct PyInterpreter {
    StubInterpreterTable table;
    const StubInterpreterTable *operator->() const
    {
        return &table;
    }
};

struct GPUTrace {
    static const PyInterpreter *get_trace()
    {
        return nullptr;
    }
};

} // namespace c10::impl

#endif
