/* SPDX-License-Identifier: MIT
 *
 * Stands in for c10's header of this name: exceptions and checks, as far as the glue uses them. */
#ifndef STUB_C10_UTIL_EXCEPTION_H
#define STUB_C10_UTIL_EXCEPTION_H

#include <exception>
#include <sstream>
#include <string>

#define C10_LIKELY(condition) __builtin_expect(static_cast<bool>(condition), 1)
#define C10_UNLIKELY(condition) __builtin_expect(static_cast<bool>(condition), 0)

namespace c10 {

class Error : public std::exception {
  public:
    explicit Error(std::string text) : text_(std::move(text))
    {
    }
    const char *what() const noexcept override
    {
        return text_.c_str();
    }
    const char *what_without_backtrace() const noexcept
    {
        return text_.c_str();
    }

  private:
    std::string text_;
};
class OutOfMemoryError : public Error {
    using Error::Error;
};
class ValueError : public Error {
    using Error::Error;
};

template <class... Parts> std::string stub_text(const Parts &...parts)
{
    std::ostringstream stream;
    (stream << ... << parts);
    return stream.str();
}

void stub_warn(const std::string &text);

} // namespace c10

#define TORCH_CHECK_WITH(Type, condition, ...)            \
    do {                                                  \
        if (!(condition)) {                               \
            throw c10::Type(c10::stub_text(__VA_ARGS__)); \
        }                                                 \
    } while (0)
#define TORCH_CHECK(condition, ...) TORCH_CHECK_WITH(Error, condition, __VA_ARGS__)
#define TORCH_CHECK_VALUE(condition, ...) TORCH_CHECK_WITH(ValueError, condition, __VA_ARGS__)
#define TORCH_WARN(...) c10::stub_warn(c10::stub_text(__VA_ARGS__))

#endif
