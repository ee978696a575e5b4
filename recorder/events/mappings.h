// Events of mappings: range table → counters. Every one of them is recorded.
#pragma once

#include <cstdint>

#include "common/session/functions.h"
#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// A mapping as the program requested it, where the kernel put it.
struct Mapping {
  Api api;
  std::uint64_t address;
  std::uint64_t bytes;
  int protection;
  int flags;
  bool file;
  bool hinted = false;     // an address was asked for that the kernel need not give
  bool in_memory = false;  // shared, of a file on tmpfs or hugetlbfs, or a memfd
  bool for_later = false;  // is_for_later()
};

// Whether Ruby has mapped it, from `caller`: 384 MiB for a cache of its shapes (since 3.3), of
// which it touches little. As good as a reservation, although the kernel accounts for it.
bool is_for_later(InHook, std::uint64_t bytes, const void* caller) noexcept;

// Whether the mapping is to be asked about its file: a shared one of a size that counts.
bool may_be_in_memory(const Mapping&) noexcept;

void on_map(InHook, const Mapping&) noexcept;
void on_unmap(InHook, Api, std::uint64_t address, std::uint64_t bytes) noexcept;
// `stays`: the old range is mapped as before, but its pages have moved (MREMAP_DONTUNMAP).
enum class OldRange : std::uint8_t { goes, stays };
void on_remap(InHook, std::uint64_t old_address, std::uint64_t old_bytes, std::uint64_t new_address,
              std::uint64_t new_bytes, OldRange = OldRange::goes) noexcept;
void on_protect(InHook, std::uint64_t address, std::uint64_t bytes, int protection) noexcept;
void on_break(InHook, Api, std::uint64_t old_break, std::uint64_t new_break) noexcept;

// A mapping that the program had made before `oomrec attach`. Not in order: best the highest first.
void add_preexisting_mapping(InHook, std::uint64_t address, std::uint64_t bytes) noexcept;
// After the last of them: large ones count as far as they are touched.
void look_at_preexisting(InHook) noexcept;

// Whether the program had mapped or reserved anonymous memory in the range before.
bool is_known(InHook, std::uint64_t address, std::uint64_t bytes) noexcept;

// Bytes that this mapping, or this change of protection, would add to what the limit counts.
std::uint64_t counted_bytes(InHook, const Mapping&) noexcept;
std::uint64_t counted_by_protect(InHook, std::uint64_t address, std::uint64_t bytes,
                                 int protection) noexcept;
// For a resize: its growth (the whole new range where the old stays), if the old range counts; else
// 0.
std::uint64_t counted_by_remap(InHook, std::uint64_t old_address, std::uint64_t growth) noexcept;

}  // namespace oomrec::recorder
