// UTF-8 according to RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <string_view>

namespace oomrec::text {

// Length of the sequence at the start of `text`; 0: not UTF-8.
std::size_t utf8_bytes(std::string_view text) noexcept;

// The code point of a complete sequence.
char32_t code_point(std::string_view sequence) noexcept;

// The sequence of a code point, in `bytes`. Empty: a control character, a surrogate, or no code
// point at all.
std::string_view utf8_of(char32_t point, char (&bytes)[4]) noexcept;

}  // namespace oomrec::text
