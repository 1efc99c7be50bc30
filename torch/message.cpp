/* SPDX-License-Identifier: MIT
 *
 * See message.h. The fields and their order are PyTorch's (docs/internals/torch-policy.md, section
 * 3.6); what other processes hold is left out, as PyTorch does where it cannot ask. */
#include "message.h"

#include <array>
#include <cstdio>

namespace unfrag {

std::string size_text(uint64_t bytes)
{
    std::array<char, 48> text{};
    const char *const units[] = {"KiB", "MiB", "GiB"};
    if (bytes <= 1024) {
        std::snprintf(text.data(), text.size(), "%llu bytes",
                      static_cast<unsigned long long>(bytes));
        return text.data();
    }
    auto amount = static_cast<double>(bytes) / 1024;
    size_t unit = 0;
    while (unit < 2 && amount > 1024) {
        amount /= 1024;
        unit++;
    }
    std::snprintf(text.data(), text.size(), "%.2f %s", amount, units[unit]);
    return text.data();
}

std::string out_of_memory_text(const OutOfMemory &facts)
{
    uint64_t held = facts.allocated_bytes + facts.pool_bytes;
    std::string text = "CUDA out of memory. Tried to allocate " + size_text(facts.wanted_bytes) +
                       ". GPU " + std::to_string(facts.device) + " has a total capacity of " +
                       size_text(facts.total_bytes) + " of which " + size_text(facts.free_bytes) +
                       " is free. ";
    if (facts.limit_bytes != NO_LIMIT) {
        text += size_text(facts.limit_bytes) + " allowed; ";
    }
    text += "Of the allocated memory " + size_text(held) + " is allocated by PyTorch, ";
    if (facts.pool_bytes != 0) {
        text += "with " + size_text(facts.pool_bytes) +
                " allocated in private pools (e.g., CUDA Graphs), ";
    }
    text += "and " + size_text(facts.reserved_bytes > held ? facts.reserved_bytes - held : 0) +
            " is reserved by PyTorch but unallocated.";
    return text + "\nunfrag: " + facts.cause;
}

} // namespace unfrag
