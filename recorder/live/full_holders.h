// Holders whose figures do not fit into one word (common/session/brief_holder.h): they have an
// entry in `full_holders`. A holder becomes full at most once, and stays so.
#pragma once

#include <cstdint>

#include "common/session/brief_holder.h"
#include "common/system/hook_scope.h"

namespace oomrec::live {

// Of holder `number`; nullptr: it is brief.
session::Holder* find_full(std::uint32_t number) noexcept;

// The same, of one that is known to be full.
session::Holder& full_holder(std::uint32_t number) noexcept;

// Makes it full, if it is not, with `flags` added. nullptr: the table is full.
session::Holder* make_full(InHook, std::uint32_t number, std::uint8_t flags = 0) noexcept;

// Without what lanes have not published. A racing free can be seen before its allocation: then it
// is negative.
std::int64_t live_bytes_of(std::uint32_t number) noexcept;

// Nothing refers to this one any more: its entry is used again.
void free_full_holder(InHook, session::Holder&, std::uint32_t full) noexcept;

void reset_full_holders(InHook) noexcept;  // after a fork

}  // namespace oomrec::live
