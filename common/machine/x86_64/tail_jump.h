#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace oomrec::machine {

// visit(target) of each jump out of the function whose code this is, at this address.
template <class Visit>
void for_each_tail_jump(std::span<const std::uint8_t> code, std::uint64_t address, Visit visit) {
  constexpr std::size_t kBytes = 5;
  if (code.size() < kBytes) return;
  const std::uint8_t* const jump = code.data() + code.size() - kBytes;
  if (jump[0] != 0xe9) return;  // jmp rel32 at the end: before it, data may look like a jump
  std::int32_t distance = 0;
  std::memcpy(&distance, jump + 1, sizeof distance);
  visit(address + code.size() + static_cast<std::uint64_t>(std::int64_t{distance}));
}

}  // namespace oomrec::machine
