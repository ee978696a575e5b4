#include "tools/views/top/live_holders.h"

#include <algorithm>
#include <cmath>

#include "common/residency/rows.h"

namespace oomrec::tools::views {
namespace {

using session::TableId;

constexpr double kSmoothedOver_s = 4;
constexpr std::size_t kMostGroups = 255;  // a forged recording may claim more

// The thread group or rank that the outermost frame names; empty: none.
std::string name_of_group(const recording::Recording& recording, std::uint64_t frame) {
  if (session::kind_of(frame) != session::FrameKind::special) return {};
  const std::uint32_t argument = session::argument_of(frame);
  switch (session::special_of(frame)) {
    case session::SpecialFrame::thread_group:
      return recording.text(argument);
    case session::SpecialFrame::rank:
      return "rank " + std::to_string(argument);
    default:
      return {};
  }
}

}  // namespace

std::uint16_t LiveHolders::group_of(const recording::Recording& recording, std::uint32_t node) {
  std::uint64_t outermost = 0;
  recording.view().walk(node, [&](std::uint64_t frame) { outermost = frame; });
  const auto [at, is_new] = group_ids_.try_emplace(outermost, std::uint16_t{0});
  if (!is_new || groups_.size() > kMostGroups) return at->second;
  const std::string name = name_of_group(recording, outermost);
  if (name.empty()) return 0;
  at->second = static_cast<std::uint16_t>(groups_.size());
  groups_.push_back(name);
  return at->second;
}

void LiveHolders::add_holder(const recording::Recording& recording, std::uint64_t entry,
                             const session::Holder& holder) {
  if (holder.space >= kSpaceCount) return;
  LiveHolder& row = rows_[entry];
  row.node = holder.node;
  row.space = static_cast<Space>(holder.space);
  row.group = group_of(recording, holder.node);
  spaces_[holder.space] = true;
}

void LiveHolders::refresh(const recording::Recording& recording, std::uint64_t now_ns) {
  const session::View& view = recording.view();
  const std::uint64_t forgotten = view.header().forgotten_stacks;
  const bool all_anew = forgotten != forgotten_;
  forgotten_ = forgotten;
  const std::uint64_t old_count = rows_.size();
  const std::uint64_t count = std::max(old_count, view.count(TableId::holders));
  rows_.resize(count);
  held_.assign(count, {});
  session::Holder holder{};
  for (std::uint64_t i = 1; i < count; ++i) {
    if (!view.read(TableId::holders, i, holder)) continue;
    if (i >= old_count || all_anew) add_holder(recording, i, holder);
    held_[i] = {holder.live_bytes, holder.live_count};
  }
  view.for_each_sum([&](const session::View::PendingSum& pending) {
    const std::uint32_t entry = pending.sum.holder;
    if (entry >= count) return;
    held_[entry].bytes += pending.sum.live_bytes();
    held_[entry].count += pending.sum.live_count();
  });

  const double seconds = static_cast<double>(now_ns - before_ns_) / 1e9;
  const bool first = before_ns_ == 0;
  if (first) first_ns_ = now_ns;
  // An exponential mean. During its first seconds it is the plain mean since the first refresh.
  const double elapsed = static_cast<double>(now_ns - first_ns_) / 1e9;
  const double share = first || seconds <= 0
                           ? 0
                           : std::max(1 - std::exp(-seconds / kSmoothedOver_s), seconds / elapsed);
  const std::uint64_t header =
      recording.weight() == recording::Weight::resident ? residency::block_header_bytes(view) : 0;
  const auto at_least_zero = [](std::uint64_t sum) {  // threads continue while their sums are read
    return static_cast<std::int64_t>(sum) < 0 ? 0 : sum;
  };
  for (std::uint64_t i = 1; i < count; ++i) {
    LiveHolder& row = rows_[i];
    const std::uint64_t bytes = at_least_zero(held_[i].bytes);
    const double change = static_cast<double>(bytes) - static_cast<double>(row.live_bytes);
    if (share > 0) row.growth += share * (change / seconds - row.growth);
    if (std::abs(row.growth) < 1) row.growth = 0;
    row.live_bytes = bytes;
    row.live_count = at_least_zero(held_[i].count);
    row.weight_bytes =
        recording.weight_of(static_cast<std::uint32_t>(i),
                            bytes + residency::header_bytes_of(header, row.space, row.live_count));
  }
  before_ns_ = now_ns;
}

}  // namespace oomrec::tools::views
