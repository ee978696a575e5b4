// A high-water mark that the program sets: the most memory in use since, above what was in use
// then.
//
// For the process that is heap and mappings, as the soft limit counts them; for the thread that set
// it, what it allocated less what it freed itself. Both are sampled where a thread publishes its
// share, so each thread may have had up to kPublishBytes more for a moment. There is one mark at a
// time.
#pragma once

#include <atomic>
#include <cstdint>

#include "common/system/hook_scope.h"
#include "common/system/mutex.h"
#include "recorder/state/thread_state.h"

namespace oomrec::recorder {

struct Watermark {
  // Taken to set it: a thread must not raise the new top by what it saw before.
  system::Mutex lock;
  std::atomic<bool> is_set{false};
  std::atomic<std::int64_t> base{0}, top{0};
  std::atomic<const ThreadState*> thread{nullptr};  // that set it
  std::atomic<std::int64_t> own_base{0}, own_top{0};
};
inline constinit Watermark g_watermark;

void set_watermark(InHook) noexcept;

enum class WatermarkOf : std::uint8_t { process, thread };
// In bytes; 0 where none was set, or another thread set the thread's.
std::uint64_t watermark(InHook, WatermarkOf) noexcept;

void raise_watermark(const ThreadState&) noexcept;

void reset_watermark_after_fork(InHook) noexcept;

// After a thread has published its share.
inline void update_watermark(const ThreadState& thread) noexcept {
  if (g_watermark.is_set.load(std::memory_order_relaxed)) [[unlikely]]
    raise_watermark(thread);
}

}  // namespace oomrec::recorder
