#include "tools/recording/live/outside_look.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "common/residency/residency.h"
#include "common/session/view.h"
#include "tools/recording/live/writable_session.h"

namespace oomrec::tools::recording {
namespace {

using session::ResidencyPage;
using session::TableId;

// Null: the entry does not exist.
std::byte* page_of(WritableSession& open, std::uint32_t entry) {
  static constexpr session::Chunks kChunks{sizeof(ResidencyPage)};
  if (entry >= open.view().count(TableId::residency)) return nullptr;
  const session::Chunks::Slot slot = kChunks.locate(entry);
  const session::TableDirectory& table =
      open.header().tables[static_cast<std::size_t>(TableId::residency)];
  const std::uint64_t at = table.chunk_offsets[slot.chunk] + slot.byte;
  return table.entry_bytes == sizeof(ResidencyPage) ? open.at(at, sizeof(ResidencyPage)) : nullptr;
}

}  // namespace

bool enter_look(const std::filesystem::path& session, pid_t pid) {
  WritableSession open{session};
  if (!open.is_open() || page_of(open, 1) == nullptr) return false;
  constexpr std::uint64_t kMostNs = 1'000'000'000;  // the process does not run
  std::vector<residency::Piece> pieces(residency::pieces_of(open.view()));
  std::vector<char> text(64 * 1024);
  std::vector<std::uint64_t> blocks(4096);
  const auto look = std::make_unique<residency::Look>();
  residency::look_at(OutsideHooks::in_hook(), pid, open.view(), {pieces, text, blocks},
                     residency::Deadline{kMostNs}, *look);
  const session::Residency* const before = open.view().residency();
  if (look->found.time_ns == 0) return false;
  if (before != nullptr && residency::is_worse(look->found, *before)) return false;

  // In place of the latest one if there is no memory for another.
  const std::uint32_t other = open.header().latest_look == 1 ? 1 + session::kResidencyPages : 1;
  const std::uint32_t first = page_of(open, other) != nullptr ? other : 1;
  std::uint32_t pages = 0;
  while (pages < session::kResidencyPages && page_of(open, first + pages) != nullptr) ++pages;
  const std::size_t fit =
      (pages * sizeof(ResidencyPage) - sizeof look->found) / sizeof(session::ResidencyRow);
  std::sort(look->rows, look->rows + look->found.row_count, [](const auto& a, const auto& b) {
    return std::max(a.untouched_bytes, a.reserved_bytes) >
           std::max(b.untouched_bytes, b.reserved_bytes);
  });
  look->found.row_count =
      static_cast<std::uint32_t>(std::min<std::size_t>(look->found.row_count, fit));
  const auto* const from = reinterpret_cast<const std::byte*>(look.get());
  for (std::uint32_t page = 0; page < pages; ++page)
    std::memcpy(page_of(open, first + page), from + page * sizeof(ResidencyPage),
                sizeof(ResidencyPage));
  open.header().latest_look.store(first, std::memory_order_release);
  return true;
}

}  // namespace oomrec::tools::recording
