// --limit: how much one process may hold, heap and counted mappings together.
//
// Checked against the totals that the threads have published, within 64 KiB a thread. After the
// first failure a reserve (2 % of the limit, at least 8 MiB) stays open for requests under 64 KiB
// and mappings of at most 1 MiB, so that the program can still report its own error: Python's small
// objects are in arenas that are mapped, and a traceback needs a few.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace oomrec::live {

class SoftLimit {
 public:
  static constexpr std::uint64_t kSmallBytes = 64 * 1024;
  static constexpr std::uint64_t kArenaBytes = 1 << 20;

  void set(std::uint64_t bytes) noexcept { bytes_.store(bytes, std::memory_order_relaxed); }
  std::uint64_t bytes() const noexcept {
    return bytes_.load(std::memory_order_relaxed);
  }  // 0: none

  // Whether `requested` more bytes are allowed on top of `live` bytes; `mapped`: as a mapping.
  bool admits(std::int64_t live, std::uint64_t requested, bool mapped = false) noexcept {
    const std::uint64_t limit = bytes();
    if (limit == 0) return true;
    std::uint64_t sum = 0;
    const std::uint64_t held = live < 0 ? 0 : static_cast<std::uint64_t>(live);
    if (!__builtin_add_overflow(held, requested, &sum)) {
      if (sum <= limit) return true;
      const bool is_small = mapped ? requested <= kArenaBytes : requested < kSmallBytes;
      if (is_small && failed_.load(std::memory_order_relaxed) &&
          sum - limit <= reserve_bytes(limit)) {
        return true;
      }
    }
    failed_.store(true, std::memory_order_relaxed);
    return false;
  }

  static std::uint64_t reserve_bytes(std::uint64_t limit) noexcept {
    return std::max(limit / 50, std::uint64_t{8} << 20);
  }

  void reset() noexcept { failed_.store(false, std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> bytes_{0};
  std::atomic<bool> failed_{false};
};

}  // namespace oomrec::live
