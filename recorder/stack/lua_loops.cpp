#include "recorder/stack/lua_loops.h"

#include <atomic>

#include "recorder/stack/eh_frame.h"

namespace oomrec::stack {
namespace {

// The largest function that was found so far, and smaller than any loop before that. Written once
// or twice.
constexpr std::uint64_t kLeast = 4096;
constinit std::atomic<std::uint64_t> g_start{0}, g_end{kLeast};

std::uint64_t address_of(const NativeFrame& frame) noexcept {
  return frame.exact ? frame.pc : frame.pc - 1;
}

// The stack pointers of frames of the function that is known.
std::uint32_t known_loops(const NativeStack& native, std::span<std::uint64_t> loops) noexcept {
  const AddressRange loop{g_start.load(std::memory_order_relaxed),
                          g_end.load(std::memory_order_relaxed)};  // at first of no code
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i != native.count && count != loops.size(); ++i)
    if (loop.holds(address_of(native.frames[i]))) loops[count++] = native.frames[i].sp;
  return count;
}

}  // namespace

std::uint32_t lua_loops(const NativeStack& native, std::span<std::uint64_t> loops) noexcept {
  if (const std::uint32_t count = known_loops(native, loops)) return count;
  for (std::uint32_t i = 0; i != native.count; ++i) {
    const std::uint64_t address = address_of(native.frames[i]);
    FrameEntry entry;
    if (!is_lua_code(address) ||
        find_entry(loaded_module(known_module_slot_at(address)), address, entry) != Found::entry ||
        entry.bytes <=
            g_end.load(std::memory_order_relaxed) - g_start.load(std::memory_order_relaxed))
      continue;
    g_end.store(entry.start + entry.bytes, std::memory_order_relaxed);
    g_start.store(entry.start, std::memory_order_relaxed);
  }
  return known_loops(native, loops);
}

}  // namespace oomrec::stack
