/* SPDX-License-Identifier: MIT
 *
 * The text of torch.OutOfMemoryError: PyTorch's form, so that what reads it (unfrag explain among
 * others) goes on doing so, and one line with the cause. Numbers in, text out. */
#ifndef UF_TORCH_MESSAGE_H
#define UF_TORCH_MESSAGE_H

#include <cstdint>
#include <string>

namespace unfrag {

constexpr uint64_t NO_LIMIT = UINT64_MAX;

struct OutOfMemory {
    int device = 0;
    uint64_t wanted_bytes = 0; /* the segment or block that could not be had */
    uint64_t total_bytes = 0, free_bytes = 0;
    uint64_t limit_bytes = NO_LIMIT;
    uint64_t allocated_bytes = 0, reserved_bytes = 0;
    uint64_t pool_bytes = 0; /* cached in private pools */
    std::string cause;       /* one line of the allocator's */
};

/* "512 bytes", "20.00 MiB", "1.50 GiB" */
std::string size_text(uint64_t bytes);

std::string out_of_memory_text(const OutOfMemory &facts);

} // namespace unfrag

#endif
