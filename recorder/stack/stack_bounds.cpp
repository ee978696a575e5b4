#include "recorder/stack/stack_bounds.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "common/machine/instructions.h"
#include "common/machine/page.h"
#include "common/system/atomics.h"
#include "common/system/syscalls.h"
#include "recorder/stack/memory_map.h"
#include "recorder/stack/stack.h"

namespace oomrec::stack {
namespace {

// The kernel keeps this much free below a stack that grows (stack_guard_gap), so an sp this close
// below the last known end is on that stack.
constexpr std::uint64_t kGuardGap = 1 << 20;

// glibc places a thread's control block, to which the thread pointer points, at the upper end of
// its stack, also of one that the program has allocated.
using machine::thread_pointer;

bool holds(InHook hook, StackRange& range, std::uint64_t sp) noexcept {
  if (sp >= range.low && sp < range.high) return true;
  if (range.kind == StackKind::mapping || sp >= range.low || range.low - sp > kGuardGap)
    return false;
  if (range.kind == StackKind::probed && readable_end(hook, sp, range.low) != range.low)
    return false;
  range.low = machine::page_down(sp);
  return true;
}

// Fails for the main thread, and on a stack that the program has switched to.
bool find_own_by_probing(InHook hook, std::uint64_t sp, StackRange& found) noexcept {
  const std::uint64_t end = thread_pointer();
  if (sp >= end || end - sp > kGuardGap || readable_end(hook, sp, end) != end) return false;
  found = {machine::page_down(sp), end, StackKind::probed};
  return true;
}

// Of a stack that the program has switched to: up to the first page that cannot be read. Fails if
// there is none near, and in a sandbox.
bool find_other_by_probing(InHook hook, std::uint64_t sp, StackRange& found) noexcept {
  std::uint64_t end = known_stack_end(hook, sp);
  if (end == 0) {
    const std::uint64_t generation = known_stacks_generation();
    end = readable_end(hook, sp, machine::page_down(sp) + kLargestKnown);
    if (end == 0 || end == machine::page_down(sp) + kLargestKnown) return false;
    add_known_stack(hook, sp, end, generation);
  }
  found = {machine::page_down(sp), end, StackKind::probed};
  return true;
}

bool find_in_maps(InHook hook, std::uint64_t sp, StackRange& found) noexcept {
  char name[16];
  MemoryMap map(hook, name, sizeof name);
  MappedRange range;
  while (map.next(range)) {
    if (sp >= range.end) continue;
    if (sp < range.start || !range.readable || !range.writable) return false;
    const bool grows = std::strcmp(name, "[stack]") == 0;
    found = {range.start, range.end, grows ? StackKind::growing : StackKind::mapping};
    return true;
  }
  return false;
}

}  // namespace

// The kernel reads the set before it rejects the request. Every program may call this one, also
// where a filter kills it for process_vm_readv.
std::uint64_t readable_end(InHook, std::uint64_t from, std::uint64_t to) noexcept {
  constexpr long kNoSuchRequest = -1;
  constexpr std::size_t kSetBytes = 8;
  for (std::uint64_t page = machine::page_down(from); page < to; page += machine::page_bytes()) {
    const long result = system::call(SYS_rt_sigprocmask, kNoSuchRequest, page, nullptr, kSetBytes);
    if (result == -EFAULT) return page;
    if (result != -EINVAL) return 0;
  }
  return to;
}

StackRange find_stack_bounds(InHook hook, ThreadStacks& thread, std::uint64_t sp) noexcept {
  for (StackRange& range : thread.ranges) {
    if (holds(hook, range, sp)) return range;
  }
  StackRange found;
  const bool is_first = thread.ranges[0].high == 0;
  const bool is_probed =
      is_first ? find_own_by_probing(hook, sp, found) : find_other_by_probing(hook, sp, found);
  if (!is_probed && !find_in_maps(hook, sp, found)) return {};
  // Many coroutines: their bounds are found more quickly elsewhere.
  if (!is_first && is_probed) return found;
  // The first is the thread's own and stays; the others are replaced in turn.
  StackRange& slot =
      is_first ? thread.ranges[0] : thread.ranges[1 + thread.next_range++ % (kStackRanges - 1)];
  slot = found;
  return found;
}

namespace {

// A word: the number of the page, how many pages further the end is, and the generation. Words of
// other generations are forgotten.
constexpr unsigned kPageBits = 12, kNumberBits = 36, kSpanBits = 9, kGenerationBits = 19;
static_assert(kNumberBits + kSpanBits + kGenerationBits == 64);
static_assert(kLargestKnown >> kPageBits < 1u << kSpanBits);

constexpr unsigned kSlotBits = 14;
constexpr std::uint32_t kSlotsOfPage = 4;  // slots for a page

constinit std::atomic<std::uint64_t> g_slots[(1u << kSlotBits) + kSlotsOfPage]{};
constinit std::atomic<std::uint64_t> g_generation{1};
// All known stacks lie between these.
constinit std::atomic<std::uint64_t> g_lowest{~std::uint64_t{0}}, g_highest{0};

constexpr std::uint64_t low_bits(std::uint64_t value, unsigned bits) noexcept {
  return value & ((std::uint64_t{1} << bits) - 1);
}

constexpr std::uint64_t word_of(std::uint64_t page, std::uint64_t span,
                                std::uint64_t generation) noexcept {
  return low_bits(page, kNumberBits) | span << kNumberBits |
         generation << (kNumberBits + kSpanBits);
}
constexpr std::uint64_t kSpanMask = low_bits(~std::uint64_t{0}, kSpanBits) << kNumberBits;

std::atomic<std::uint64_t>* slots_of(std::uint64_t page) noexcept {
  return g_slots + (page * 0x9e37'79b9'7f4a'7c15u >> (64 - kSlotBits));
}

}  // namespace

std::uint64_t known_stacks_generation() noexcept {
  return low_bits(g_generation.load(std::memory_order_acquire), kGenerationBits);
}

std::uint64_t known_stack_end(InHook, std::uint64_t sp) noexcept {
  const std::uint64_t page = sp >> kPageBits;
  const std::uint64_t wanted = word_of(page, 0, known_stacks_generation());
  const std::atomic<std::uint64_t>* const slots = slots_of(page);
  for (std::uint32_t way = 0; way < kSlotsOfPage; ++way) {
    const std::uint64_t word = slots[way].load(std::memory_order_relaxed);
    if ((word & ~kSpanMask) == wanted)
      return (page + ((word & kSpanMask) >> kNumberBits)) << kPageBits;
  }
  return 0;
}

void add_known_stack(InHook, std::uint64_t sp, std::uint64_t end,
                     std::uint64_t generation) noexcept {
  const std::uint64_t page = sp >> kPageBits;
  const std::uint64_t word = word_of(page, (end >> kPageBits) - page, generation);
  lower_to(g_lowest, sp);
  raise_to(g_highest, end);
  std::atomic<std::uint64_t>* const slots = slots_of(page);
  std::uint32_t way = 0;
  while (way < kSlotsOfPage - 1 &&
         slots[way].load(std::memory_order_relaxed) >> (kNumberBits + kSpanBits) == generation)
    ++way;
  slots[way].store(word, std::memory_order_release);
}

void on_unmapped(InHook, std::uint64_t address, std::uint64_t bytes) noexcept {
  if (address < g_highest.load(std::memory_order_relaxed) &&
      address + bytes > g_lowest.load(std::memory_order_relaxed))
    g_generation.fetch_add(1, std::memory_order_acq_rel);
}

}  // namespace oomrec::stack
