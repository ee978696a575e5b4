// Gives code objects ids in the session.
//
// An address does not identify a code object: programs that create code at run time reuse addresses
// constantly. Hence two tables: a cache by address, whose entries are validated by a fingerprint at
// every lookup, and the authoritative one by a hash of the content (file, name, first line, line
// table). A function created a thousand times is one entry of the session.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/system/hook_scope.h"
#include "recorder/python/chain_cache.h"

namespace oomrec::stack {

// The entry in `codes` of a code object with this fingerprint; 0: unknown (tables full, a dead or
// foreign object). kHiddenCode: a helper frame of the interpreter, not to be shown.
inline constexpr std::uint32_t kHiddenCode = 0xffff'ffff;
std::uint32_t intern_code(InHook, std::uint64_t code_object, const CodeFingerprint&) noexcept;

// A code object's texts, as another session of this program had them.
struct CodeTexts {
  std::string_view file, name, line_table;
  std::uint32_t first_line;
};

// The entry of a code object with these texts; 0: a table is full, or this program has no Python.
std::uint32_t add_code(InHook, const CodeTexts&) noexcept;

bool prepare_codes() noexcept;  // reserves the tables; false: no memory
void reset_codes(InHook) noexcept;

}  // namespace oomrec::stack
