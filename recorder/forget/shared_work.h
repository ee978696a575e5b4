// Work that any number of threads do at a time, until one of them ends it. Nobody waits.
//
// A thread counts itself, and then looks whether the work is still open. Who ends it closes it
// first, and then looks whether anybody is inside: so one sees the other.
#pragma once

#include <atomic>
#include <cstdint>

namespace oomrec::recorder {

class SharedWork {
 public:
  // What was stored before is seen by those who enter.
  void open() noexcept { open_.store(true, std::memory_order_release); }

  // False: it is closed. Otherwise leave() follows.
  bool enter() noexcept {
    inside_.fetch_add(1, std::memory_order_seq_cst);
    if (open_.load(std::memory_order_seq_cst)) return true;
    leave();
    return false;
  }
  void leave() noexcept { inside_.fetch_sub(1, std::memory_order_release); }

  // Nobody enters any more. True: nobody is inside either, and what they did is seen. False: call
  // it again.
  bool close() noexcept {
    open_.store(false, std::memory_order_seq_cst);
    return inside_.load(std::memory_order_seq_cst) == 0;
  }

  void reset() noexcept {  // after a fork
    open_.store(false, std::memory_order_relaxed);
    inside_.store(0, std::memory_order_relaxed);
  }

 private:
  std::atomic<bool> open_{false};
  std::atomic<std::uint32_t> inside_{0};  // threads
};

}  // namespace oomrec::recorder
