/* SPDX-License-Identifier: MIT
 *
 * libc10 of the fake torch: the function that throws, by the name and arguments of PyTorch's. */
#include <cstdint>

#include "c10/util/Exception.h"

namespace c10 {
namespace detail {

__attribute__((visibility("default"))) void torchCheckFail(const char *, const char *, uint32_t,
                                                           const char *text)
{
    throw Error(text);
}

} // namespace detail
} // namespace c10
