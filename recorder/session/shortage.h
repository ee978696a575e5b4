// When stacks are to be forgotten (recorder/forget/forget.h): with so many nodes, or when there was
// no memory for something.
#pragma once

#include <atomic>
#include <cstdint>

namespace oomrec::session {

// With so many nodes in use, a round of forgetting is due or under way.
inline constinit std::atomic<std::uint32_t> g_forget_at{~std::uint32_t{0}};

inline constinit std::atomic<std::uint32_t> g_shortages{0};  // how often there was no memory

inline void count_shortage() noexcept {
  g_shortages.fetch_add(1, std::memory_order_relaxed);
  g_forget_at.store(0, std::memory_order_relaxed);
}

}  // namespace oomrec::session
