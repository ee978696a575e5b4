// Reads many pieces of this process' memory at once, which may not be there.
//
// A piece of a block that the program has not freed is there, which the recorder knows of each
// small one in exact mode. Others are read by a system call, which takes ten times as long.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <cstring>

#include "common/session/layout.h"
#include "common/system/hook_scope.h"

namespace oomrec::stack {

using BlockTest = bool(std::uint64_t address, std::uint64_t bytes) noexcept;

// Whether a live block of at least `bytes` bytes begins at `address`. nullptr: no block is known.
inline constinit BlockTest* g_is_block = nullptr;

class Pieces {
 public:
  static constexpr std::uint32_t kMost = session::kMaxFrames;

  // After read(), `to` has the `bytes` bytes at `address`. `block`: where their block begins, if
  // they are in one.
  void add(std::uint64_t address, void* to, std::size_t bytes, std::uint64_t block) noexcept {
    if (g_is_block != nullptr && g_is_block(block, address - block + bytes)) {
      std::memcpy(to, reinterpret_cast<const void*>(address), bytes);
      return;
    }
    from_[count_] = {reinterpret_cast<void*>(address), bytes};
    to_[count_++] = {to, bytes};
  }

  // A system call for all, and another for each piece that cannot be read, which becomes zero.
  void read(InHook) noexcept;

 private:
  iovec from_[kMost], to_[kMost];
  std::uint32_t count_ = 0;
};

}  // namespace oomrec::stack
