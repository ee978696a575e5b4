#include "recorder/stack/known_stacks.h"

#include <atomic>

#include "common/system/atomics.h"
#include "recorder/stack/stack.h"

namespace oomrec::stack {
namespace {

// A word: the number of the page, how many pages further the end is, and the generation. Words of
// other generations are forgotten.
constexpr unsigned kPageBits = 12, kNumberBits = 36, kSpanBits = 9, kGenerationBits = 19;
static_assert(kNumberBits + kSpanBits + kGenerationBits == 64);
static_assert(kLargestKnown >> kPageBits < 1u << kSpanBits);

constexpr unsigned kSlotBits = 14;
constexpr std::uint32_t kWays = 4;  // slots for a page

constinit std::atomic<std::uint64_t> g_slots[(1u << kSlotBits) + kWays]{};
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
  for (std::uint32_t way = 0; way < kWays; ++way) {
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
  while (way < kWays - 1 &&
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
