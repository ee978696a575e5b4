// The rows of a session's latest look, by holder, in a fixed amount of memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "common/session/view.h"

namespace oomrec::residency {

// Before each block of glibc's allocator, and of Scudo, is a header, which is no usable byte: of
// glibc's smallest block a quarter. 0: another allocator has the blocks.
std::uint64_t block_header_bytes(const session::View&) noexcept;

// Of all blocks of the heap that are in use: what they take up beside their live bytes.
std::uint64_t header_bytes(const session::View&) noexcept;

// Of so many blocks.
inline std::uint64_t header_bytes_of(std::uint64_t block_header_bytes, Space space,
                                     std::uint64_t live_count) noexcept {
  return space == Space::heap ? block_header_bytes * live_count : 0;
}

// Of all that holders have, what is in memory or in swap by the latest look. What was obtained
// since counts as touched. `live_bytes`: of the heap and of mappings, now.
std::uint64_t held_in_memory(const session::View&, std::uint64_t live_bytes) noexcept;

class Rows {
 public:
  // Those of the latest look in the session.
  explicit Rows(const session::View&) noexcept;
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;

  // Of what the blocks of this holder take up now, what is in memory or in swap. What it has
  // obtained since the look counts as touched.
  std::uint64_t resident(std::uint32_t number, const session::Holder&) const noexcept;

 private:
  session::ResidencyRow rows_[session::kResidencyRows];
  std::uint32_t count_ = 0;
  const std::uint64_t block_header_bytes_;
};

// Of `rows`, in the order of their holders, that of this one; null: it has none.
const session::ResidencyRow* row_of(std::span<const session::ResidencyRow> rows,
                                    std::uint32_t holder) noexcept;

// `bytes`: live ones, and the headers of its blocks.
inline std::uint64_t resident_by(const session::ResidencyRow& row, std::uint64_t bytes) noexcept {
  const std::uint64_t touched = bytes - std::min(bytes, row.untouched_bytes);
  return touched < row.reserved_bytes ? row.reserved_bytes : touched;
}

// Whether a bundle is about resident memory: the kernel kills for that, and counts what was never
// touched for nothing. A request is refused for address space, or what is live.
bool is_about_resident_memory(Trigger, LimitKind near) noexcept;

// Counts so many untouched bytes as touched, of the newest memory first. Only of memory that is at
// least as new as `since_s`. Returns how many there were.
std::uint64_t credit(std::span<session::ResidencyRow> rows, std::uint64_t bytes,
                     std::uint32_t since_s) noexcept;

}  // namespace oomrec::residency
