// Checks JSON that a stranger gives us, before it becomes part of a file of ours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace oomrec::text {

enum class JsonKind : std::uint8_t { none, object, other };

// Whether `text` is one JSON value that every reader takes: UTF-8, nested at most 128 deep, numbers
// that fit a double. An escape that is half a surrogate pair (Python's for what is not UTF-8)
// becomes \ufffd in place. none: it is not.
JsonKind check_json(std::span<char> text) noexcept;

// Bytes of the valid UTF-8 sequence that `text` starts with; 0 when it starts with none (RFC 3629:
// no overlong forms, no surrogates, nothing above U+10FFFF).
std::size_t utf8_bytes(std::string_view text) noexcept;

}  // namespace oomrec::text
