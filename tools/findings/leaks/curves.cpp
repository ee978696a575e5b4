#include "tools/findings/leaks/curves.h"

#include <algorithm>
#include <unordered_map>

namespace oomrec::tools::findings {
namespace {

// The last checkpoint has all holders: cut to the number that the others can list.
constexpr std::size_t kListed = session::kCheckpointRows;

// The number of checkpoints before the exit freed most: in the last twentieth of the time, or two
// seconds, up to the last that is almost as large as the largest. All, if less than half was freed.
std::size_t count_before_exit(const std::vector<recording::Checkpoint>& checkpoints) {
  if (checkpoints.size() < 2) return checkpoints.size();
  constexpr std::uint64_t kExitNs = 2'000'000'000;
  const std::uint64_t end = checkpoints.back().time_ns;
  const std::uint64_t lasts = std::max(kExitNs, (end - checkpoints.front().time_ns) / 20);
  std::uint64_t most = 0;
  for (const recording::Checkpoint& checkpoint : checkpoints)
    if (checkpoint.time_ns + lasts >= end)
      most = std::max(most, recording::host_bytes_of(checkpoint));
  if (2 * recording::host_bytes_of(checkpoints.back()) > most) return checkpoints.size();
  std::size_t count = checkpoints.size();
  while (recording::host_bytes_of(checkpoints[count - 1]) < most - most / 20) --count;
  return count;
}

}  // namespace

void add(StackGroup& sum, const StackGroup& part) {
  if (sum.holders.empty() || part.live_bytes > sum.live_bytes) sum.stack = part.stack;
  sum.estimated = sum.estimated || part.estimated;
  sum.holders.insert(sum.holders.end(), part.holders.begin(), part.holders.end());
  sum.live_bytes += part.live_bytes;
  sum.live_count += part.live_count;
  sum.total_bytes += part.total_bytes;
  if (part.oldest_ns) sum.oldest_ns = std::min(*part.oldest_ns, sum.oldest_ns.value_or(~0ULL));
}

std::vector<StackGroup> groups_of(const std::vector<recording::HolderFigures>& holders,
                                  recording::Stacks& stacks) {
  std::vector<StackGroup> groups;
  std::unordered_map<std::uint64_t, std::size_t> index;  // in `groups`, by stack and space
  for (const recording::HolderFigures& holder : holders) {
    if (static_cast<std::int64_t>(holder.live_bytes) <= 0) continue;  // read while threads ran
    const recording::StackId stack = stacks.of_node(holder.node);
    const std::uint64_t key = std::uint64_t{stacks.without_recursion(stack)} << 8 |
                              static_cast<std::uint64_t>(holder.space);
    const auto [at, is_new] = index.try_emplace(key, groups.size());
    if (is_new) groups.emplace_back().space = holder.space;
    StackGroup row;
    row.stack = stack;
    row.estimated = holder.estimated;
    row.holders = {holder.entry};
    row.live_bytes = holder.live_bytes;
    row.live_count = holder.live_count;
    row.total_bytes = holder.total_bytes;
    row.oldest_ns = holder.oldest_ns;
    add(groups[at->second], row);
  }
  return groups;
}

Curves::Curves(const recording::Recording& recording, Until until)
    : recording_(recording), checkpoints_(recording::checkpoints_of(recording)) {
  const std::size_t all = checkpoints_.size();
  if (until == Until::exit) checkpoints_.resize(count_before_exit(checkpoints_));
  is_cut_ = checkpoints_.size() < all;
  by_holder_.resize(recording.view().count(session::TableId::holders));
  for (std::uint32_t i = 0; i < checkpoints_.size(); ++i) {
    std::vector<recording::CheckpointRow>& largest = checkpoints_[i].largest;
    largest.resize(std::min(largest.size(), kListed));
    for (const recording::CheckpointRow& row : largest) {
      if (row.holder < by_holder_.size()) by_holder_[row.holder].push_back({i, row.live_bytes});
    }
  }
}

double seconds_of(std::uint64_t time_ns, const recording::Recording& recording) {
  const std::uint64_t start = recording.header().start_monotonic_ns;
  return static_cast<double>(static_cast<std::int64_t>(time_ns - start)) / 1e9;
}

double Curves::at_seconds(const recording::Checkpoint& checkpoint) const {
  return seconds_of(checkpoint.time_ns, recording_);
}

double Curves::seconds() const {
  if (checkpoints_.empty()) return 0;
  return at_seconds(checkpoints_.back()) - at_seconds(checkpoints_.front());
}

HeldCurve Curves::of(const StackGroup& group) const {
  std::vector<double> bytes(checkpoints_.size());
  std::vector<bool> listed(checkpoints_.size());
  for (const std::uint32_t holder : group.holders) {
    for (const Point& point : by_holder_[holder]) {
      bytes[point.checkpoint] += static_cast<double>(point.bytes);
      listed[point.checkpoint] = true;
    }
  }
  HeldCurve curve;
  for (std::size_t i = 0; i < checkpoints_.size(); ++i) {
    if (listed[i] || checkpoints_[i].largest.size() < kListed)
      curve.add(at_seconds(checkpoints_[i]), bytes[i]);
  }
  return curve;
}

}  // namespace oomrec::tools::findings
