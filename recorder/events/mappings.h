// Events of mappings: range table → counters. Every one of them is recorded.
#pragma once

#include <cstdint>

#include "common/session/vocabulary.h"
#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// A mapping as the program asked for it and the kernel gave it.
struct Mapping {
  Api api;
  std::uint64_t address;
  std::uint64_t bytes;
  int protection;
  int flags;
  bool file;
};

void on_map(InHook, const Mapping&) noexcept;
void on_unmap(InHook, Api, std::uint64_t address, std::uint64_t bytes) noexcept;
// `old_stays`: the old range is mapped as before, its pages have moved (MREMAP_DONTUNMAP).
void on_remap(InHook, std::uint64_t old_address, std::uint64_t old_bytes, std::uint64_t new_address,
              std::uint64_t new_bytes, bool old_stays = false) noexcept;
void on_protect(InHook, std::uint64_t address, std::uint64_t bytes, int protection) noexcept;
void on_break(InHook, Api, std::uint64_t old_break, std::uint64_t new_break) noexcept;

// Bytes that would newly count if this mapping, or this change of protection, were made.
std::uint64_t counted_bytes(InHook, const Mapping&) noexcept;
std::uint64_t counted_by_protect(InHook, std::uint64_t address, std::uint64_t bytes,
                                 int protection) noexcept;
// A resize: its growth (the whole new range where the old stays), when the old range counts; else
// 0.
std::uint64_t counted_by_remap(InHook, std::uint64_t old_address, std::uint64_t growth) noexcept;

}  // namespace oomrec::recorder
