// When the oldest live block of each holder was allocated.
#include <algorithm>
#include <limits>

#include "tools/recording/reading/recording.h"

namespace oomrec::tools::recording {
namespace {

using session::TableId;

constexpr std::uint32_t kNoBirth = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t kSecondNs = 1'000'000'000;

// The earliest birth of each entry's blocks, in seconds since the start of the session.
class Births {
 public:
  explicit Births(std::uint64_t count) : earliest_(count, kNoBirth) {}

  void add(std::uint32_t entry, std::uint32_t birth_s) {
    if (entry < earliest_.size()) earliest_[entry] = std::min(earliest_[entry], birth_s);
  }
  std::uint32_t of(std::uint32_t entry) const {
    return entry < earliest_.size() ? earliest_[entry] : kNoBirth;
  }

 private:
  std::vector<std::uint32_t> earliest_;
};

template <class T, class Each>
void for_each_entry(const session::View& view, TableId table, Each&& each) {
  T entry{};
  for (std::uint64_t i = 1; i < view.count(table); ++i)
    if (view.read(table, i, entry)) each(static_cast<const T&>(entry));
}

}  // namespace

void Recording::add_ages(std::vector<HolderFigures>& rows) const {
  Births by_holder{view_.count(TableId::holders)};
  Births by_node{view_.count(TableId::nodes)};  // small blocks, which are all on the heap
  for_each_entry<session::LiveBlock>(view_, TableId::live_blocks, [&](const auto& block) {
    if (block.address != 0) by_holder.add(block.holder, block.birth_s);
  });
  for_each_entry<session::LiveRange>(view_, TableId::live_ranges, [&](const auto& range) {
    const bool counted = range.kind == static_cast<std::uint32_t>(session::RangeKind::counted);
    if (range.start != 0 && counted) by_holder.add(range.holder, range.birth_s);
  });
  for_each_entry<session::DeviceBlock>(view_, TableId::device_blocks, [&](const auto& block) {
    if (block.key != 0 && (block.flags & session::kDeviceDormant) == 0)
      by_holder.add(block.holder, block.birth_s);
  });
  for (std::uint64_t page = 1; page < view_.count(TableId::side_pages); ++page) {
    view_.for_each_small_block(
        page, [&](const session::SmallBlock& block) { by_node.add(block.node, block.birth_s); });
  }
  for (HolderFigures& row : rows) {
    std::uint32_t birth_s = by_holder.of(row.entry);
    if (row.space == Space::heap) birth_s = std::min(birth_s, by_node.of(row.node));
    if (row.live_bytes == 0 || birth_s == kNoBirth) continue;
    row.oldest_ns = header().start_monotonic_ns + birth_s * kSecondNs;
  }
}

}  // namespace oomrec::tools::recording
