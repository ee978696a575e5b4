// Includes nothing of this machine: tested on every one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace oomrec::machine {

// visit(target) of each jump out of the function whose code this is, at this address. Cold parts
// may lie behind the jump.
template <class Visit>
void for_each_tail_jump(std::span<const std::uint8_t> code, std::uint64_t address, Visit visit) {
  for (std::size_t at = 0; at + 4 <= code.size(); at += 4) {
    std::uint32_t word = 0;
    std::memcpy(&word, code.data() + at, sizeof word);
    if ((word & 0xfc00'0000) != 0x1400'0000) continue;  // b
    const auto distance = static_cast<std::int32_t>(word << 6) >> 4;
    const std::uint64_t target = address + at + static_cast<std::uint64_t>(std::int64_t{distance});
    if (target < address || target >= address + code.size()) visit(target);
  }
}

}  // namespace oomrec::machine
