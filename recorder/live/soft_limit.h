// --limit: how much one process may hold, heap and counted mappings together.
//
// Checked against the totals that the threads have published, within 64 KiB a thread.
//
// A program that was refused memory must still be able to report that: Python imports modules and
// maps arenas for a traceback, V8 describes its heap. So a refusal opens a reserve beyond the
// limit, for small requests of every thread. It is closed when the program holds less again by as
// much as the reserve, or has gone on to grow by twice as much below the limit. Then the next
// request beyond the limit is refused again, with the whole reserve to report that.
//
// An allocator whose mapping is refused may serve its caller in another way, as Python's does by
// malloc, so that the program does not know yet. A refused mapping therefore opens only a quarter,
// to blocks of the heap: the program must not use up the reserve before its own request is refused.
// Tiny blocks may use that quarter at any time: runtimes such as V8 cannot handle the failure of
// their own bookkeeping, and grow by larger pieces, which are refused first.
//
// Even its own request's refusal may not reach the program: Python 3.15 adds two numbers in another
// way then. So in Python a default reserve grows by its size, twice at most, if a block is refused
// although it is open and the latest part half used.
//
// The reserve does not serve a request that was refused and is repeated (asks_again() in heap.cpp):
// Ruby collects garbage and asks again, and would tell its program of the failure only once the
// reserve is used up.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace oomrec::live {

class SoftLimit {
 public:
  static constexpr std::uint64_t kSmallBytes = 256 * 1024;  // such as a module of the traceback
  static constexpr std::uint64_t kTinyBytes = 4 * 1024;
  static constexpr std::uint64_t kArenaBytes = 1 << 20;  // of a mapping, such as Python's arenas

  // 1 % of the limit, within 8 and 64 MiB, but at most a third of the limit.
  static constexpr std::uint64_t default_reserve(std::uint64_t limit_bytes) noexcept {
    constexpr std::uint64_t kLeast = 8 << 20, kMost = 64 << 20;
    return std::min(std::clamp(limit_bytes / 100, kLeast, kMost), limit_bytes / 3);
  }

  // `bytes` 0: no limit. `reserve_bytes` 0: nothing beyond the limit. `may_grow`: after let_grow().
  void set(std::uint64_t bytes, std::uint64_t reserve_bytes, bool may_grow = false) noexcept {
    bytes_.store(bytes, std::memory_order_relaxed);
    constexpr std::uint64_t kMost = std::uint64_t{1} << 60;  // so that no sum overflows
    reserve_.store(std::min(reserve_bytes, kMost), std::memory_order_relaxed);
    may_grow_.store(may_grow, std::memory_order_relaxed);
    close_reserve();
  }
  void let_grow() noexcept { grows_.store(true, std::memory_order_relaxed); }

  std::uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }
  std::uint64_t reserve_bytes() const noexcept {
    return reserve_.load(std::memory_order_relaxed) * parts_.load(std::memory_order_relaxed);
  }

  // Whether `requested` more bytes are allowed on top of `live` bytes; `mapped`: as a mapping.
  bool admits(std::int64_t live, std::uint64_t requested, bool mapped = false) noexcept {
    if (beyond(live, requested) <= open_bytes(requested, mapped)) return true;
    refuse(live, mapped);
    return false;
  }

  // Whether they are allowed without the reserve.
  bool is_within(std::int64_t live, std::uint64_t requested) const noexcept {
    return beyond(live, requested) == 0;
  }

  // A block, or a mapping, is refused with `live` bytes live.
  void refuse(std::int64_t live, bool mapped = false) noexcept {
    const std::uint64_t held = held_of(live);
    opened_at_.store(held, std::memory_order_relaxed);
    if (!mapped && to_mappings_.exchange(true, std::memory_order_relaxed)) refuse_again(held);
  }

  // The process holds `live` bytes now, as published.
  void observe(std::int64_t live) noexcept {
    const std::uint64_t opened_at = opened_at_.load(std::memory_order_relaxed);
    if (opened_at == kClosed) [[likely]]
      return;
    const std::uint64_t held = held_of(live);
    const std::uint64_t reserve = reserve_.load(std::memory_order_relaxed);
    const bool has_shrunk = held + reserve < std::min(opened_at, bytes());
    const bool has_gone_on = held <= bytes() && held > opened_at + 2 * reserve;
    if (has_shrunk || has_gone_on) close_reserve();
  }

  void close_reserve() noexcept {
    opened_at_.store(kClosed, std::memory_order_relaxed);
    to_mappings_.store(false, std::memory_order_relaxed);
    parts_.store(1, std::memory_order_relaxed);
  }

 private:
  static std::uint64_t held_of(std::int64_t live) noexcept {
    return live < 0 ? 0 : static_cast<std::uint64_t>(live);
  }

  // How many bytes beyond the limit the process would hold. 0 without one.
  std::uint64_t beyond(std::int64_t live, std::uint64_t requested) const noexcept {
    const std::uint64_t limit = bytes();
    std::uint64_t sum = 0;
    if (limit == 0) return 0;
    if (__builtin_add_overflow(held_of(live), requested, &sum)) return ~std::uint64_t{0};
    return sum <= limit ? 0 : sum - limit;
  }

  // A block was refused with `held` bytes live, and the reserve was open.
  void refuse_again(std::uint64_t held) noexcept {
    const std::uint64_t part = reserve_.load(std::memory_order_relaxed);
    std::uint32_t parts = parts_.load(std::memory_order_relaxed);
    const bool is_used = held > bytes() && held - bytes() > part * parts - part / 2;
    const bool grows =
        may_grow_.load(std::memory_order_relaxed) && grows_.load(std::memory_order_relaxed);
    if (is_used && parts < kMostParts && grows)
      parts_.compare_exchange_strong(parts, parts + 1, std::memory_order_relaxed);
  }

  // How much of the reserve is open to such a request.
  std::uint64_t open_bytes(std::uint64_t requested, bool mapped) const noexcept {
    const bool is_small = mapped ? requested <= kArenaBytes : requested < kSmallBytes;
    if (!is_small) return 0;
    if (to_mappings_.load(std::memory_order_relaxed)) return reserve_bytes();
    const bool is_open = opened_at_.load(std::memory_order_relaxed) != kClosed;
    return !mapped && (is_open || requested < kTinyBytes) ? reserve_bytes() / 4 : 0;
  }

  static constexpr std::uint64_t kClosed = ~std::uint64_t{0};
  static constexpr std::uint32_t kMostParts = 3;

  std::atomic<std::uint64_t> bytes_{0};
  std::atomic<std::uint64_t> reserve_{0};          // its first part
  std::atomic<std::uint64_t> opened_at_{kClosed};  // live bytes at the latest refusal
  std::atomic<bool> to_mappings_{false};           // a block of the heap was refused
  std::atomic<bool> may_grow_{false}, grows_{false};
  std::atomic<std::uint32_t> parts_{1};  // of reserve_ bytes each
};

}  // namespace oomrec::live
