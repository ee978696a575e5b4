// How often a process may write bundles.
#pragma once

#include <atomic>
#include <cstdint>

namespace oomrec::recorder {

// The first three bundles are written at once. Later ones are due only after fifty times the
// previous one's writing time, so that writing costs less than 2 %. A process writes at most
// twenty; the last is reserved for a last chance, such as the end of the process. Times are in ns,
// of any clock.
//
// Only the thread that writes a bundle calls ended(). Other threads may call due() meanwhile, and
// get the result of before or after.
class BundleRate {
 public:
  static constexpr std::uint32_t kAtOnce = 3;
  static constexpr std::uint32_t kMost = 20;
  static constexpr std::uint64_t kPauseFactor = 50;

  bool due(std::uint64_t now_ns) const noexcept {
    const std::uint32_t written = written_.load(std::memory_order_relaxed);
    if (written + 1 >= kMost) return false;
    return written < kAtOnce || now_ns >= due_ns_.load(std::memory_order_relaxed);
  }
  bool due_as_last_chance() const noexcept {
    return written_.load(std::memory_order_relaxed) < kMost;
  }

  void ended(std::uint64_t began_ns, std::uint64_t now_ns) noexcept {
    due_ns_.store(now_ns + kPauseFactor * (now_ns - began_ns), std::memory_order_relaxed);
    ended_ns_.store(now_ns, std::memory_order_relaxed);
    written_.fetch_add(1, std::memory_order_relaxed);
  }
  std::uint64_t ended_ns() const noexcept { return ended_ns_.load(std::memory_order_relaxed); }

  void reset() noexcept {
    written_.store(0, std::memory_order_relaxed);
    ended_ns_.store(0, std::memory_order_relaxed);
    due_ns_.store(0, std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint32_t> written_{0};
  std::atomic<std::uint64_t> ended_ns_{0};
  std::atomic<std::uint64_t> due_ns_{0};  // from the fourth bundle on
};

}  // namespace oomrec::recorder
