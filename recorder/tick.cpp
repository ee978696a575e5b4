#include "recorder/tick.h"

#include "common/system/files.h"
#include "recorder/checkpoints.h"
#include "recorder/counters.h"
#include "recorder/device/devices.h"
#include "recorder/helper/from_process.h"
#include "recorder/near_limit.h"
#include "recorder/stack/stack.h"
#include "recorder/telling.h"
#include "recorder/time_line.h"

namespace oomrec::recorder {

using session::g_session;
using session::Header;
using session::Point;

namespace {

constexpr std::uint32_t kPoints = 1200;

struct Ticks {
  std::atomic<bool> at_work{false};
  std::atomic<std::uint64_t> coarser_at{~std::uint64_t{0}};  // the tick of the last time
  std::uint32_t number = 0;
  TimeLine<kPoints> line;
  std::uint32_t entry_of[kPoints] = {};         // place → entry in `points`
  std::uint32_t device_entry_of[kPoints] = {};  // … in `device_points`; 0: none
};
constinit Ticks g_ticks;

void write_point(Point& point, std::uint64_t now, std::uint64_t rss) noexcept {
  const Header& header = g_session.header();
  std::atomic_ref time(point.time_ns);
  time.store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  point.rss_bytes = rss;
  for (std::size_t at = 0; at < kSpaceCount; ++at)
    point.live_bytes[at] = header.spaces[at].live_bytes();
  time.store(now, std::memory_order_release);
}

void add_point(InHook hook, std::uint32_t tick, std::uint64_t now) noexcept {
  TimeLine<kPoints>& line = g_ticks.line;
  if (!line.wants(tick)) return;
  const std::uint32_t place = line.place(tick);
  if (place == line.kNone) return;
  const std::uint64_t rss = g_session.header().health.rss_bytes.load(std::memory_order_relaxed);
  write_device_point(hook, now, g_ticks.device_entry_of[place]);
  if (place < line.count()) {
    write_point(g_session.points.at(g_ticks.entry_of[place]), now, rss);
  } else if (g_session.points.append(hook, g_ticks.entry_of[place], [&](Point& point) noexcept {
               write_point(point, now, rss);
             })) {
    line.added();
  }
  g_session.header().thinned.store(line.spacing(), std::memory_order_relaxed);
}

}  // namespace

void fall_back_to_sampling() noexcept {
  g_state.mode.store(Mode::sampled, std::memory_order_relaxed);
  g_session.header().mode_now.store(static_cast<std::uint32_t>(Mode::sampled),
                                    std::memory_order_relaxed);
  g_session.arena.give_held_back();
}

void sample_coarser() noexcept {
  if (exact()) return fall_back_to_sampling();
  Header& header = g_session.header();
  const std::uint64_t tick = header.last_tick_ns.load(std::memory_order_relaxed);
  const std::uint64_t interval = g_state.interval_bytes.load(std::memory_order_relaxed);
  if (interval >= kCoarsestInterval || g_ticks.coarser_at.exchange(tick) == tick) return;
  const std::uint64_t large = g_state.large_bytes.load(std::memory_order_relaxed);
  g_state.interval_bytes.store(interval * 2, std::memory_order_relaxed);
  g_state.large_bytes.store(large * 2, std::memory_order_relaxed);
  std::atomic_ref(header.interval_bytes).store(interval * 2, std::memory_order_relaxed);
  std::atomic_ref(header.large_bytes).store(large * 2, std::memory_order_relaxed);
}

void read_clock(InHook hook, ThreadState& thread) noexcept {
  if (thread.reallocating) return;
  const std::uint64_t now = system::coarse_ns();
  thread.time_ms = static_cast<std::uint32_t>((now - g_state.start_ns) / 1'000'000);
  thread.quick = is_quick();
  if (thread.time_ms - thread.sums_settled_ms >= kTickNs / 1'000'000) [[unlikely]] {
    thread.sums_settled_ms = thread.time_ms;
    thread.sums.settle(hook, g_state.holders);
  }
  std::uint64_t last = g_session.header().last_tick_ns.load(std::memory_order_relaxed);
  if (now < last + kTickNs) [[likely]]
    return;
  if (g_ticks.at_work.exchange(true, std::memory_order_acquire)) return;
  g_session.header().last_tick_ns.store(now, std::memory_order_relaxed);
  fold_unlaned(hook, thread);
  g_session.keep_alive(hook);
  helper::finish(hook, 0);  // only asks: a helper that has ended is reaped
  note_recovery(hook, now);
  stack::check_a_module(hook);
  watch_limits(hook, now);
  const std::uint32_t tick = g_ticks.number++;
  add_point(hook, tick, now);
  add_checkpoint(hook, tick, now);
  g_ticks.at_work.store(false, std::memory_order_release);
}

void forget_ticks(InHook hook) noexcept {
  g_ticks.at_work.store(false, std::memory_order_relaxed);
  g_ticks.number = 0;
  for (std::uint32_t& entry : g_ticks.device_entry_of) entry = 0;
  g_ticks.line.forget();
  forget_checkpoints(hook);
}

}  // namespace oomrec::recorder
