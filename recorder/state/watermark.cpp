#include "recorder/state/watermark.h"

#include <algorithm>

#include "recorder/state/counters.h"

namespace oomrec::recorder {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

// The bytes that the lane's threads allocated minus those that they freed.
std::int64_t own_bytes(const ThreadState& thread) noexcept {
  std::int64_t live = 0;
  for (const Space space : {Space::heap, Space::map}) {
    const session::SpaceCounters& own = thread.lane->spaces[static_cast<std::size_t>(space)];
    live += static_cast<std::int64_t>(own.usable_allocated_bytes.load(kRelaxed) -
                                      own.usable_freed_bytes.load(kRelaxed));
  }
  return live;
}

// Under the lock.
void raise(std::atomic<std::int64_t>& top, std::int64_t to) noexcept {
  if (to > top.load(kRelaxed)) top.store(to, kRelaxed);
}

}  // namespace

void raise_watermark(const ThreadState& thread) noexcept {
  const system::MutexGuard guard(g_watermark.lock);
  if (!guard) return;
  raise(g_watermark.top, live_bytes(&thread));
  if (g_watermark.thread.load(kRelaxed) == &thread) raise(g_watermark.own_top, own_bytes(thread));
}

void set_watermark(InHook hook) noexcept {
  const ThreadState* thread = current_thread(hook);
  if (thread == nullptr) return;
  const system::MutexGuard guard(g_watermark.lock);
  if (!guard) return;
  const std::int64_t live = live_bytes(thread), own = own_bytes(*thread);
  g_watermark.base.store(live, kRelaxed);
  g_watermark.top.store(live, kRelaxed);
  g_watermark.own_base.store(own, kRelaxed);
  g_watermark.own_top.store(own, kRelaxed);
  g_watermark.thread.store(thread, kRelaxed);
  g_watermark.is_set.store(true, kRelaxed);
}

std::uint64_t watermark(InHook hook, WatermarkOf of) noexcept {
  const ThreadState* thread = current_thread(hook);
  if (thread == nullptr || !g_watermark.is_set.load(kRelaxed)) return 0;
  raise_watermark(*thread);
  if (of == WatermarkOf::thread && g_watermark.thread.load(kRelaxed) != thread) return 0;
  const std::int64_t above =
      of == WatermarkOf::thread
          ? g_watermark.own_top.load(kRelaxed) - g_watermark.own_base.load(kRelaxed)
          : g_watermark.top.load(kRelaxed) - g_watermark.base.load(kRelaxed);
  return static_cast<std::uint64_t>(std::max<std::int64_t>(above, 0));
}

void reset_watermark_after_fork(InHook) noexcept {
  g_watermark.lock.unlock();
  g_watermark.is_set.store(false, kRelaxed);
  g_watermark.thread.store(nullptr, kRelaxed);
}

}  // namespace oomrec::recorder
