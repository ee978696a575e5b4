// Where Lua keeps what we read, by its version: offsets of fields in bytes, on a machine of 64
// bits. From lstate.h and lobject.h of each version's release, and lj_obj.h of LuaJIT 2.1 with
// references of 64 bits.
#pragma once

#include <cstdint>
#include <string_view>

namespace oomrec::stack {

// A lua_State, and how its global_State leads to the main thread's.
struct LuaStateLayout {
  std::uint16_t tag_at;
  std::uint8_t tag;
  std::uint16_t status, global, call, stack;
  std::int16_t main_thread;   // from the global_State
  bool is_main_thread_there;  // else a pointer to it
  std::uint16_t further;      // it may be so many bytes further down, as branches have more fields
  std::uint16_t before;       // bytes of the program's in the same block
};

struct LuaLayout {
  std::uint32_t version;  // from which on: 50403 is 5.4.3; kLuaJit
  LuaStateLayout state;

  std::uint16_t savedpc;      // in CallInfo
  std::uint16_t call_status;  // 16 bits; 32 from 5.5 on
  std::uint32_t kind_bit;     // of the status: a call of Lua …
  bool is_bit_of_c;           // … or, in later versions, of C
  std::uint32_t fresh_bit;    // it runs in a loop of its own; 0: each does

  // Proto.
  std::uint8_t prototype_tag;
  std::uint16_t size_code, line_defined, code, line_info, source;
  std::uint16_t absolute_lines;  // 0: line_info has an int for each instruction
  std::uint16_t size_absolute_lines;
  bool has_long_texts_elsewhere;  // a long TString has a pointer where others have their text
};

// In all that we know, LuaJIT's excepted.
inline constexpr std::uint16_t kLuaTag = 8;
inline constexpr std::uint16_t kLuaCallOuter = 16;    // in CallInfo
inline constexpr std::uint16_t kLuaStateBytes = 208;  // at most; the first CallInfo is in it
inline constexpr std::uint16_t kLuaPrototype = 24;    // in LClosure
inline constexpr std::uint16_t kLuaShortLength = 11, kLuaLongLength = 16, kLuaText = 24;
inline constexpr std::uint8_t kLuaFunction = 6;  // tt of an LClosure
inline constexpr std::uint8_t kLuaLongString = 0x14;

// clang-format off
inline constexpr LuaLayout kLuaLayouts[] = {
  {50303, {8, 8, 12, 24, 32, 56,  200, false, 0, 8}, 40, 66,      2, false,     8,
     9, 24, 40, 56, 72, 104,  0,  0, false},
  {50400, {8, 8, 10, 24, 32, 56,  256, false, 0, 8}, 32, 62,      2, true,      0,
    10, 24, 44, 64, 88, 112, 96, 40, false},
  {50401, {8, 8, 10, 24, 32, 48,  264, false, 0, 8}, 32, 62,      2, true,      0,
    10, 24, 44, 64, 88, 112, 96, 40, false},
  {50402, {8, 8, 10, 24, 32, 48,  264, false, 0, 8}, 32, 62,      2, true,      4,
    10, 24, 44, 64, 88, 112, 96, 40, false},
  {50500, {8, 8, 11, 24, 32, 48, 1416, true, 0,  8}, 32, 60, 0x8000, true, 0x10000,
    10, 24, 44, 64, 88, 112, 96, 40, true},
};
// Its call is the C frame in which its interpreter runs; what its calls are: jit.cpp.
inline constexpr std::uint32_t kLuaJit = 20100;
inline constexpr LuaLayout kLuaJitLayout =
  {kLuaJit, {9, 6, 11, 16, 80, 56, -96, true, 16, 0}, 0, 0, 0, false, 0,
     7, 12, 72, 32, 80, 64, 0, 0, false};
// clang-format on
inline constexpr std::uint32_t kLuaWideStatus = 50500;   // from there on a call's has 32 bits
inline constexpr std::uint32_t kLuaVersionsEnd = 50600;  // not known from there on

// "$LuaVersion: Lua 5.4.4  Copyright…" → 50404; 0: it says nothing of the kind.
constexpr std::uint32_t lua_version(std::string_view identity) noexcept {
  constexpr std::string_view kBefore = "Lua 5.";
  const std::size_t at = identity.find(kBefore);
  if (at == identity.npos || at + kBefore.size() + 3 > identity.size()) return 0;
  const std::string_view rest = identity.substr(at + kBefore.size());
  const auto digit = [](char letter) { return letter >= '0' && letter <= '9'; };
  if (!digit(rest[0]) || rest[1] != '.' || !digit(rest[2])) return 0;
  return 50000 + static_cast<std::uint32_t>(rest[0] - '0') * 100 +
         static_cast<std::uint32_t>(rest[2] - '0');
}

// nullptr: a version that we do not know.
constexpr const LuaLayout* lua_layout(std::uint32_t version) noexcept {
  const LuaLayout* found = nullptr;
  for (const LuaLayout& layout : kLuaLayouts)
    if (layout.version <= version && version < kLuaVersionsEnd) found = &layout;
  return found;
}

}  // namespace oomrec::stack
