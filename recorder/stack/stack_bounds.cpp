#include "recorder/stack/stack_bounds.h"

#include <cstring>

#include "recorder/stack/memory_map.h"

namespace oomrec::stack {
namespace {

// The kernel keeps this much free below a stack that grows (stack_guard_gap), so an sp this close
// below the last known end is on that stack.
constexpr std::uint64_t kGuardGap = 1 << 20;
constexpr std::uint64_t kPage = 4096;

bool holds(StackRange& range, std::uint64_t sp) noexcept {
  if (sp >= range.low && sp < range.high) return true;
  if (range.grows == 0 || sp >= range.low || range.low - sp > kGuardGap) return false;
  range.low = sp & ~(kPage - 1);
  return true;
}

bool find_in_maps(InHook hook, std::uint64_t sp, StackRange& found) noexcept {
  char name[16];
  MemoryMap map(hook, name, sizeof name);
  MappedRange range;
  while (map.next(range)) {
    if (sp >= range.end) continue;
    if (sp < range.start || !range.readable || !range.writable) return false;
    found = {range.start, range.end, std::strcmp(name, "[stack]") == 0};
    return true;
  }
  return false;
}

}  // namespace

StackRange find_stack_bounds(InHook hook, ThreadStacks& thread, std::uint64_t sp) noexcept {
  for (StackRange& range : thread.ranges) {
    if (holds(range, sp)) return range;
  }
  StackRange found;
  if (!find_in_maps(hook, sp, found)) return {};
  // The first is the thread's own and stays; the others are replaced in turn.
  StackRange& slot = thread.ranges[0].high == 0
                         ? thread.ranges[0]
                         : thread.ranges[1 + thread.next_range++ % (kStackRanges - 1)];
  slot = found;
  return found;
}

}  // namespace oomrec::stack
