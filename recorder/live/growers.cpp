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

}  // namespace oomrec::live
