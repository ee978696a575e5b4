#include "recorder/stack/lua_loops.h"

#include <atomic>

#include "recorder/stack/eh_frame.h"

namespace oomrec::stack {

std::uint32_t lua_loops(const NativeStack& native, std::span<std::uint64_t> loops) noexcept {
  AddressRange loop;
  const auto address_of = [](const NativeFrame& frame) noexcept {
    return frame.exact ? frame.pc : frame.pc - 1;
  };
  for (std::uint32_t i = 0; i != native.count; ++i) {
    const std::uint64_t address = address_of(native.frames[i]);
    FrameEntry entry;
    if (!is_lua_code(address) || loop.holds(address) ||
        find_entry(loaded_module(known_module_slot_at(address)), address, entry) != Found::entry)
      continue;
    if (entry.bytes > loop.end - loop.start) loop = {entry.start, entry.start + entry.bytes};
  }
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i != native.count && count != loops.size(); ++i)
    if (loop.holds(address_of(native.frames[i]))) loops[count++] = native.frames[i].sp;
  return count;
}

}  // namespace oomrec::stack
