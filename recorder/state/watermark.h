// A high-water mark that the program sets: most that was held since, above what was held then.
//
// Of the process, heap and mappings as the soft limit counts; of the thread that set it, what it
// allocated less what it freed itself. Both are looked at where a thread publishes its share, so
// each thread may have held up to kPublishBytes more for a moment. There is one mark at a time.
#pragma once

#include <atomic>
#include <cstdint>

#include "common/system/hook_scope.h"
#include "common/system/spin_lock.h"
#include "recorder/state/thread_state.h"

namespace oomrec::recorder {

struct Watermark {
  // A thread that is about to raise the top has not seen what the next mark begins with.
  system::SpinLock lock;
  std::atomic<bool> is_set{false};
  std::atomic<std::int64_t> base{0}, top{0};
  std::atomic<const ThreadState*> thread{nullptr};  // that set it
  std::atomic<std::int64_t> own_base{0}, own_top{0};
};
inline constinit Watermark g_watermark;

void set_watermark(InHook) noexcept;

// Bytes; 0 where none was set, or the calling thread is not the one that set it.
std::uint64_t watermark(InHook, bool own_thread) noexcept;

void raise_watermark(const ThreadState&) noexcept;

// After a fork.
void reset_watermark_after_fork(InHook) noexcept;

// After a thread has published its share.
inline void note_watermark(const ThreadState& thread) noexcept {
  if (g_watermark.is_set.load(std::memory_order_relaxed)) [[unlikely]]
    raise_watermark(thread);
}

}  // namespace oomrec::recorder
