#include "common/residency/rows.h"

#include <algorithm>

namespace oomrec::residency {

using session::ResidencyRow;

Rows::Rows(const session::View& view) noexcept {
  view.for_each_residency_row([&](const ResidencyRow& row) noexcept { rows_[count_++] = row; });
  std::sort(rows_, rows_ + count_, [](const ResidencyRow& a, const ResidencyRow& b) noexcept {
    return a.holder < b.holder;
  });
}

std::uint64_t Rows::resident(std::uint32_t holder, std::uint64_t live_bytes) const noexcept {
  const ResidencyRow* const row = row_of({rows_, count_}, holder);
  return row != nullptr ? resident_by(*row, live_bytes) : live_bytes;
}

const ResidencyRow* row_of(std::span<const ResidencyRow> rows, std::uint32_t holder) noexcept {
  const auto row = std::lower_bound(
      rows.begin(), rows.end(), holder,
      [](const ResidencyRow& one, std::uint32_t number) noexcept { return one.holder < number; });
  return row != rows.end() && row->holder == holder ? &*row : nullptr;
}

bool is_about_resident_memory(Trigger trigger, LimitKind near) noexcept {
  return trigger == Trigger::killed || trigger == Trigger::pressure ||
         (trigger == Trigger::near_limit && near == LimitKind::cgroup);
}

std::uint64_t credit(std::span<ResidencyRow> rows, std::uint64_t bytes,
                     std::uint32_t since_s) noexcept {
  std::sort(rows.begin(), rows.end(), [](const ResidencyRow& a, const ResidencyRow& b) noexcept {
    return a.birth_s != b.birth_s ? a.birth_s > b.birth_s : a.untouched_bytes > b.untouched_bytes;
  });
  std::uint64_t credited = 0;
  for (ResidencyRow& row : rows) {
    const std::uint64_t part =
        row.birth_s >= since_s ? std::min(row.untouched_bytes, bytes - credited) : 0;
    row.untouched_bytes -= part;
    credited += part;
  }
  return credited;
}

}  // namespace oomrec::residency
