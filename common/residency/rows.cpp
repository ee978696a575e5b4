#include "common/residency/rows.h"

#include <algorithm>
#include <string_view>

namespace oomrec::residency {

using session::ResidencyRow;

std::uint64_t block_header_bytes(const session::View& view) noexcept {
  constexpr std::uint64_t kOfGlibc = 8, kOfScudo = 16;
  const std::string_view file = view.string(view.header().allocator);
  if (file.starts_with("libc.so") || file.starts_with("libc-")) return kOfGlibc;
  return file.find("scudo") != file.npos ? kOfScudo : 0;
}

std::uint64_t header_bytes(const session::View& view) noexcept {
  const std::int64_t blocks = view.totals(Space::heap).live_count;
  return blocks > 0 ? block_header_bytes(view) * static_cast<std::uint64_t>(blocks) : 0;
}

std::uint64_t held_in_memory(const session::View& view, std::uint64_t live_bytes) noexcept {
  const session::Residency* const look = view.residency();
  if (look == nullptr) return live_bytes;
  std::uint64_t without_row = look->untouched_bytes, rows_live = 0, rows_resident = 0;
  session::Holder holder{};
  view.for_each_residency_row([&](const ResidencyRow& row) noexcept {
    without_row -= std::min(without_row, row.untouched_bytes);
    if (!view.read(session::TableId::holders, row.holder, holder)) return;
    // Below zero: what it freed is published, and not yet what it allocated.
    const std::uint64_t published = holder.live_bytes;
    const std::uint64_t live = published > INT64_MAX ? 0 : published;
    rows_live += live;
    rows_resident += resident_by(row, live);
  });
  const std::uint64_t all = live_bytes + rows_resident, absent = rows_live + without_row;
  return all - std::min(all, absent);
}

Rows::Rows(const session::View& view) noexcept : block_header_bytes_(block_header_bytes(view)) {
  view.for_each_residency_row([&](const ResidencyRow& row) noexcept { rows_[count_++] = row; });
  std::sort(rows_, rows_ + count_, [](const ResidencyRow& a, const ResidencyRow& b) noexcept {
    return a.holder < b.holder;
  });
}

std::uint64_t Rows::resident(std::uint32_t number, const session::Holder& holder) const noexcept {
  const std::uint64_t bytes = holder.live_bytes.load(std::memory_order_relaxed) +
                              header_bytes_of(block_header_bytes_, static_cast<Space>(holder.space),
                                              holder.live_count.load(std::memory_order_relaxed));
  const ResidencyRow* const row = row_of({rows_, count_}, number);
  return row != nullptr ? resident_by(*row, bytes) : bytes;
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
