// Checks untrusted JSON before it becomes part of one of our files.
#pragma once

#include <cstdint>
#include <span>

namespace oomrec::text {

enum class JsonKind : std::uint8_t { none, object, other };

// Whether `text` is one JSON value that every reader accepts: UTF-8, nested at most 128 deep,
// numbers that fit a double. An escape that is half a surrogate pair (which Python writes for bytes
// that are not UTF-8) is overwritten with \ufffd. `none`: it is not.
JsonKind check_json(std::span<char> text) noexcept;

}  // namespace oomrec::text
