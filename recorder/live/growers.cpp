#include "recorder/live/growers.h"

#include <algorithm>

namespace oomrec::live {

Growers::Change Growers::remove(InHook hook, HolderTable& holders, std::uint32_t number) noexcept {
  holders.shrink(hook, shares_[number].grower, shares_[number].bytes, 1);
  shares_[number] = shares_[--count_];
  return {0, 1};
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
    holders.grow(hook, grower, bytes, 0);
    return {};
  }
  Change change;
  if (count_ == kMost) {  // the smallest share goes back to the reserving holder
    const Share* const smallest = std::min_element(
        shares_, end, [](const Share& a, const Share& b) noexcept { return a.bytes < b.bytes; });
    if (smallest->reserving != 0) holders.grow(hook, smallest->reserving, smallest->bytes, 0);
    change = remove(hook, holders, static_cast<std::uint32_t>(smallest - shares_));
  }
  shares_[count_++] = {reserving, grower, bytes, now_s};
  holders.grow(hook, grower, bytes, 1);
  ++change.added_count;
  return change;
}

Growers::Change Growers::shrink(InHook hook, HolderTable& holders, std::uint32_t reserving,
                                std::uint64_t bytes) noexcept {
  Change change;
  while (bytes != 0) {
    Share* latest = nullptr;
    for (Share* share = shares_; share != shares_ + count_; ++share)
      if (share->reserving == reserving &&
          (latest == nullptr || share->latest_s > latest->latest_s))
        latest = share;
    if (latest == nullptr) {
      if (reserving != 0) holders.shrink(hook, reserving, bytes, 0);
      break;
    }
    const std::uint64_t part = std::min(bytes, latest->bytes);
    bytes -= part;
    if (part == latest->bytes) {
      change.removed_count +=
          remove(hook, holders, static_cast<std::uint32_t>(latest - shares_)).removed_count;
    } else {
      latest->bytes -= part;
      holders.shrink(hook, latest->grower, part, 0);
    }
  }
  return change;
}

}  // namespace oomrec::live
