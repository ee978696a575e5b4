// The entries of the session's `modules`, by which frames name their module. An entry whose module
// was unloaded is used again for another one when no frame has it (recorder/forget/forget.h).
//
// Every call but claim_modules() under the lock of the slots (modules.cpp), which own the entries
// of modules that are loaded, or were a moment ago.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "common/session/layout.h"
#include "common/system/hook_scope.h"

namespace oomrec::stack {

// The id of a new entry, which a slot owns; its path is copied. 0: the table is full, or there is
// no memory.
std::uint32_t add_module_entry(InHook, session::Module entry, std::string_view path) noexcept;

// The entry's slot is another module's from now on: no thread can get its id any more.
void disown_module_entry(std::uint32_t id) noexcept;

// For a round of forgetting: the modules of these frames stay.
void claim_modules(std::span<const std::uint64_t> frames, std::uint32_t round) noexcept;
void claim_modules(std::uint32_t first_frame, std::uint32_t end, std::uint32_t round) noexcept;

// Whether a frame has it, after all frames have been read in this round.
bool is_module_claimed(std::uint32_t id, std::uint32_t round) noexcept;

// Frees entries from `at` on, at most `most`, that have neither a slot nor a frame. True: those
// were the last.
bool free_module_entries(InHook, std::uint32_t& at, std::uint32_t most,
                         std::uint32_t round) noexcept;

void reset_module_entries(InHook) noexcept;  // after a fork

}  // namespace oomrec::stack
