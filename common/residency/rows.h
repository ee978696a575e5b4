// The rows of a session's latest look, by holder, in a fixed amount of memory.
#pragma once

#include <cstdint>
#include <span>

#include "common/session/view.h"

namespace oomrec::residency {

class Rows {
 public:
  // Those of the latest look in the session.
  explicit Rows(const session::View&) noexcept;
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;

  // Of `live_bytes` that the holder has now, those in memory or in swap. What it has obtained since
  // the look counts as touched.
  std::uint64_t resident(std::uint32_t holder, std::uint64_t live_bytes) const noexcept;

 private:
  session::ResidencyRow rows_[session::kResidencyRows];
  std::uint32_t count_ = 0;
};

// Of `rows`, in the order of their holders, that of this one; null: it has none.
const session::ResidencyRow* row_of(std::span<const session::ResidencyRow> rows,
                                    std::uint32_t holder) noexcept;

inline std::uint64_t resident_by(const session::ResidencyRow& row,
                                 std::uint64_t live_bytes) noexcept {
  const bool less = row.untouched_bytes < live_bytes;
  const std::uint64_t touched = less ? live_bytes - row.untouched_bytes : 0;
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
