// Finds the holders with the most live bytes in one pass, without memory of its own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "common/residency/rows.h"
#include "common/session/view.h"
#include "common/system/keep_largest.h"

namespace oomrec::bundle {

struct LargestHolder {
  std::uint64_t live_bytes;
  std::uint32_t holder;
};

// Fills `out` with the largest holders of the `wanted` spaces, largest first, and returns their
// number. Skips holders without live bytes. Selects by published bytes, because adding the lanes'
// unpublished amounts (View::holder) for every holder is too slow; those only decide the final
// order. Cost: one pass over `holders`.
//
// With `rows`, holders weigh what of them is in memory or in swap, and that is their `live_bytes`.
template <class Wanted>
std::size_t find_largest(const session::View& view, std::span<LargestHolder> out, Wanted&& wanted,
                         const residency::Rows* rows = nullptr) noexcept {
  const auto weight = [rows](std::uint64_t number, const session::Holder& holder) noexcept {
    return rows == nullptr ? holder.live_bytes.load(std::memory_order_relaxed)
                           : rows->resident(static_cast<std::uint32_t>(number), holder);
  };
  const auto smaller_last = [](const LargestHolder& a, const LargestHolder& b) {
    return a.live_bytes != b.live_bytes ? a.live_bytes > b.live_bytes : a.holder < b.holder;
  };
  std::size_t found = 0;
  session::Holder holder{};
  const std::uint64_t count = view.count(session::TableId::holders);
  for (std::uint64_t i = 1; i < count; ++i) {
    if (!view.read(session::TableId::holders, i, holder)) continue;
    // A racing free may become visible before its allocation: the figures are briefly negative.
    if (static_cast<std::int64_t>(holder.live_bytes.load(std::memory_order_relaxed)) < 0 ||
        static_cast<std::int64_t>(holder.live_count.load(std::memory_order_relaxed)) < 0)
      continue;
    const LargestHolder entry{weight(i, holder), static_cast<std::uint32_t>(i)};
    if (entry.live_bytes == 0) continue;
    if (!wanted(static_cast<Space>(holder.space))) continue;
    system::keep_largest(out, found, entry, smaller_last);
  }
  for (std::size_t i = 0; i < found; ++i) {
    if (view.holder(out[i].holder, holder)) out[i].live_bytes = weight(out[i].holder, holder);
  }
  std::sort(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(found), smaller_last);
  return found;
}

inline std::size_t find_largest(const session::View& view, std::span<LargestHolder> out) noexcept {
  return find_largest(view, out, [](Space) { return true; });
}

}  // namespace oomrec::bundle
