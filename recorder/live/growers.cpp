#include "recorder/live/growers.h"

#include <algorithm>

namespace oomrec::live {

Growers::Change Growers::remove(InHook hook, HolderTable& holders, Share& share) noexcept {
  holders.shrink(hook, share.grower, share.bytes, 1);
  std::copy(&share + 1, shares_ + count_, &share);
  --count_;
  return {0, 1};
}

Growers::Change Growers::grow(InHook hook, HolderTable& holders, std::uint32_t reserving,
                              std::span<const Part> parts, std::uint64_t bytes,
                              std::uint32_t now_s) noexcept {
  if (parts.empty()) return grow(hook, holders, reserving, 0, bytes, now_s);
  double whole = 0;
  for (const Part& part : parts) whole += static_cast<double>(part.bytes);
  Change sum;
  std::uint64_t left = bytes;
  for (const Part& part : parts) {
    const double share = static_cast<double>(bytes) * static_cast<double>(part.bytes) / whole;
    const std::uint64_t own =
        &part == &parts.back() ? left : std::min(left, static_cast<std::uint64_t>(share));
    if (own == 0) continue;
    left -= own;
    const Change change = grow(hook, holders, reserving, part.grower, own, now_s);
    sum.added_count += change.added_count;
    sum.removed_count += change.removed_count;
  }
  return sum;
}

Growers::Change Growers::grow(InHook hook, HolderTable& holders, std::uint32_t reserving,
                              std::uint32_t grower, std::uint64_t bytes,
                              std::uint32_t now_s) noexcept {
  if (grower == 0 || grower == reserving) {
    if (reserving != 0) holders.grow(hook, reserving, bytes, 0);
    return {};
  }
  Share* const end = shares_ + count_;
  Share* const share = std::find_if(shares_, end, [&](const Share& one) noexcept {
    return one.reserving == reserving && one.grower == grower;
  });
  if (share != end) {
    share->bytes += bytes;
    share->latest_s = now_s;
    std::rotate(share, share + 1, end);
    holders.grow(hook, grower, bytes, 0);
    return {};
  }
  Change change;
  if (count_ == kMost) {  // the smallest share goes back to the reserving holder
    Share& smallest = *std::min_element(
        shares_, end, [](const Share& a, const Share& b) noexcept { return a.bytes < b.bytes; });
    if (smallest.reserving != 0) holders.grow(hook, smallest.reserving, smallest.bytes, 0);
    change = remove(hook, holders, smallest);
  }
  shares_[count_++] = {reserving, grower, bytes, now_s};
  holders.grow(hook, grower, bytes, 1);
  ++change.added_count;
  return change;
}

Growers::Change Growers::shrink(InHook hook, HolderTable& holders, std::uint32_t reserving,
                                std::uint64_t bytes) noexcept {
  Change change;
  for (std::uint32_t at = count_; at-- != 0 && bytes != 0;) {
    Share& latest = shares_[at];
    if (latest.reserving != reserving) continue;
    const std::uint64_t part = std::min(bytes, latest.bytes);
    bytes -= part;
    if (part == latest.bytes) {
      change.removed_count += remove(hook, holders, latest).removed_count;
    } else {
      latest.bytes -= part;
      holders.shrink(hook, latest.grower, part, 0);
    }
  }
  if (bytes != 0 && reserving != 0) holders.shrink(hook, reserving, bytes, 0);
  return change;
}

std::int64_t Unexplained::next(std::int64_t resident_change, std::int64_t live_change,
                               std::uint64_t now_ns) noexcept {
  constexpr std::uint64_t kFillingNs = 250'000'000;
  if (now_ns > obtained_ns_ + kFillingNs) untouched_bytes_ = 0;
  const std::int64_t obtained = std::max<std::int64_t>(live_change, 0);
  if (obtained != 0) obtained_ns_ = now_ns;
  if (resident_change < 0) {
    untouched_bytes_ = std::max<std::int64_t>(untouched_bytes_ + live_change, 0);
    return std::min<std::int64_t>(resident_change - std::min<std::int64_t>(live_change, 0), 0);
  }
  const std::int64_t explained = std::min(resident_change, untouched_bytes_ + obtained);
  untouched_bytes_ += live_change - explained;
  untouched_bytes_ = std::max<std::int64_t>(untouched_bytes_, 0);
  return resident_change - explained;
}

void GrowthSamples::remove(std::uint32_t at) noexcept {
  std::copy(samples_ + at + 1, samples_ + count_, samples_ + at);
  --count_;
}

void GrowthSamples::add(std::uint32_t grower, std::uint64_t bytes) noexcept {
  Sample* const end = samples_ + count_;
  Sample* const same =
      std::find_if(samples_, end, [&](const Sample& one) noexcept { return one.grower == grower; });
  if (same != end) {
    bytes += same->bytes;
    remove(static_cast<std::uint32_t>(same - samples_));
  } else if (count_ == kMost) {  // the others share what the smallest had
    const Sample* const smallest = std::min_element(
        samples_, end, [](const Sample& a, const Sample& b) noexcept { return a.bytes < b.bytes; });
    remove(static_cast<std::uint32_t>(smallest - samples_));
  }
  samples_[count_++] = {grower, bytes};
}

void GrowthSamples::shrink(std::uint64_t bytes) noexcept {
  while (bytes != 0 && count_ != 0) {
    Sample& latest = samples_[count_ - 1];
    const std::uint64_t part = std::min(bytes, latest.bytes);
    bytes -= part;
    latest.bytes -= part;
    if (latest.bytes == 0) --count_;
  }
}

}  // namespace oomrec::live
