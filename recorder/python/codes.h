// Gives code objects ids in the session.
//
// An address does not identify a code object: programs that create code at run time reuse addresses
// constantly. Hence two tables: a cache by address, whose entries are validated by a fingerprint at
// every lookup, and the authoritative one by a hash of the content (file, name, first line, line
// table). A function created a thousand times is one entry of the session.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "common/system/hook_scope.h"
#include "recorder/python/chain_cache.h"

namespace oomrec::stack {

// The entry in `codes` of a code object with this fingerprint; 0: unknown (tables full, a dead or
// foreign object). kHiddenCode: a helper frame of the interpreter, not to be shown.
inline constexpr std::uint32_t kHiddenCode = 0xffff'ffff;
std::uint32_t intern_code(InHook, std::uint64_t code_object, const CodeFingerprint&) noexcept;

// The same of a code object that another thread executes, and which may vanish meanwhile: read by
// system calls, which do not fault. 0 also if its texts are longer than some KiB.
std::uint32_t intern_code_of_other_thread(InHook, std::uint64_t code_object) noexcept;

// A code object's texts, as another session of this program had them.
struct CodeTexts {
  std::string_view file, name, line_table;
  std::uint32_t first_line;
};

// The entry of a code object with these texts; 0: a table is full, or this program has no Python.
std::uint32_t add_code(InHook, const CodeTexts&) noexcept;

// What threads have cached of code objects is valid in one era: in the next, an id may be
// another's.
inline constinit std::atomic<std::uint32_t> g_code_era{1};

// Whether a round of forgetting should look for code objects, too, after many new ones or in a
// shortage; if so, begins another era. Then, when no thread uses what it found in an earlier one:
// claims those of all frames, a part at each call, and frees all others that no thread has looked
// up in this era. True: that was the last one.
bool begin_forgetting_codes(bool is_short) noexcept;
void claim_codes(std::uint32_t first_frame, std::uint32_t end, std::uint32_t round) noexcept;
bool forget_codes(InHook, std::uint32_t& at, std::uint32_t most, std::uint32_t round) noexcept;

bool prepare_codes() noexcept;  // reserves the tables; false: no memory
void reset_codes(InHook) noexcept;

}  // namespace oomrec::stack
