// LD_PRELOAD: a list of libraries, separated by colons or spaces.
//
// Allocates nothing: the exec hooks edit it in a vfork child.
#pragma once

#include <cstddef>
#include <string_view>

namespace oomrec::program {

// The entry of `list` whose last path component is `file_name` (such as "liboomrec.so"); empty if
// there is none.
std::string_view find_preload(std::string_view list, std::string_view file_name) noexcept;

// Copies `list` without such entries to `out`, which has capacity for list.size() bytes; order and
// separators of the others stay. Returns the bytes written.
std::size_t copy_without_preload(std::string_view list, std::string_view file_name,
                                 char* out) noexcept;

}  // namespace oomrec::program
