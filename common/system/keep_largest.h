// Keeps the largest of many entries in a fixed amount of memory, unordered.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace oomrec::system {

// The first `count` entries of `kept` are those so far: changed by nothing else in between.
template <class T, class Count, class IsLarger>
void keep_largest(std::span<T> kept, Count& count, const T& entry, IsLarger is_larger) noexcept {
  const auto end = [&] { return kept.begin() + static_cast<std::ptrdiff_t>(count); };
  if (count == kept.size()) {
    if (count == 0 || !is_larger(entry, kept.front())) return;
    std::pop_heap(kept.begin(), end(), is_larger);
    --count;
  }
  kept[count++] = entry;
  std::push_heap(kept.begin(), end(), is_larger);
}

}  // namespace oomrec::system
