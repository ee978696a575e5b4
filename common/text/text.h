// Text for people: sizes in KiB, MiB and GiB, times in UTC, errors in words.
//
// Text beyond the buffer is cut without an error. Uses no locale and no printf.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/session/vocabulary.h"
#include "common/system/text.h"

namespace oomrec::text {

class Text : public system::Text {
 public:
  using system::Text::Text;

  Text& add(std::string_view text) noexcept { return *this << text, *this; }
  Text& add(char c) noexcept { return *this << c, *this; }
  Text& number(std::uint64_t value, unsigned width = 0) noexcept {  // padded with zeros to `width`
    return padded(value, width), *this;
  }
  Text& count(std::uint64_t value) noexcept;  // "1,234,567"
  Text& signed_number(std::int64_t value) noexcept {
    return system::Text::signed_number(value), *this;
  }
  Text& hexadecimal(std::uint64_t value) noexcept { return add("0x").hex(value), *this; }
  Text& size(std::uint64_t bytes) noexcept;            // "412.0 MiB"
  Text& utc(std::uint64_t realtime_ns) noexcept;       // "2026-11-21T10:15:30Z"
  Text& utc_name(std::uint64_t realtime_ns) noexcept;  // "20261121_101530"
};

struct UtcTime {
  unsigned year, month, day, hour, minute, second;
};
UtcTime utc_time(std::uint64_t realtime_ns) noexcept;

// "ENOMEM"; "" for an unknown number.
std::string_view error_name(int error) noexcept;
// The same for a request of that space. A GPU driver returns codes of its own, PyTorch raises an
// exception: "CUDA_ERROR_OUT_OF_MEMORY", "torch.OutOfMemoryError".
std::string_view error_name(Space, int error) noexcept;
// "No space left on device" for the common errors of files; the name for others.
std::string_view error_words(int error) noexcept;

// What helps if a file cannot be written: the limit to raise, or `otherwise` for errors that only
// concern its directory.
std::string_view error_advice(int error, std::string_view otherwise) noexcept;

// "SIGSEGV"; "" for a signal other than those of crashes.
std::string_view signal_name(std::uint32_t signal) noexcept;

constexpr std::string_view base_name(std::string_view path) noexcept {
  const auto slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

// --- UTF-8 according to RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF

// Length of the sequence at the start of `text`; 0: not UTF-8.
std::size_t utf8_bytes(std::string_view text) noexcept;

// The code point of a complete sequence.
char32_t code_point(std::string_view sequence) noexcept;

// The sequence of a code point, in `bytes`. Empty: a control character, a surrogate, or no code
// point at all.
std::string_view utf8_of(char32_t point, char (&bytes)[4]) noexcept;

}  // namespace oomrec::text
