#include "shim/interpose/writable_pages.h"

#include <algorithm>

#include "common/system/memory.h"
#include "recorder/stack/memory_map.h"

namespace oomrec::shim {

WritablePages::WritablePages() noexcept
    : ranges_(static_cast<Range*>(system::map_private(kMost * sizeof(Range)))) {
  if (ranges_ == nullptr) return;
  stack::MemoryMap map{OutsideHooks::in_hook()};
  for (stack::MappedRange range; map.next(range);) {
    if (!range.writable) continue;
    if (count_ != 0 && ranges_[count_ - 1].end == range.start)
      ranges_[count_ - 1].end = range.end;
    else if (count_ < kMost)
      ranges_[count_++] = {range.start, range.end};
  }
}

WritablePages::~WritablePages() {
  if (ranges_ != nullptr) system::unmap(ranges_, kMost * sizeof(Range));
}

bool WritablePages::contain(std::uint64_t address) const noexcept {
  const Range* const after =
      std::upper_bound(ranges_, ranges_ + count_, address,
                       [](std::uint64_t at, const Range& range) { return at < range.start; });
  return after != ranges_ && address < after[-1].end;
}

}  // namespace oomrec::shim
