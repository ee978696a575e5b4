#include "recorder/tick/tick.h"

#include "common/system/files.h"
#include "recorder/devices/figures.h"
#include "recorder/failures/bundle_scheduler.h"
#include "recorder/helper/from_process.h"
#include "recorder/limits/near_limit.h"
#include "recorder/process/object_heap.h"
#include "recorder/process/preexisting.h"
#include "recorder/session/reuse.h"
#include "recorder/stack/stack.h"
#include "recorder/state/callbacks.h"
#include "recorder/state/clock.h"
#include "recorder/state/counters.h"
#include "recorder/state/time_line.h"
#include "recorder/tick/checkpoints.h"

namespace oomrec::recorder {

using session::g_session;
using session::Header;
using session::Point;

namespace {

constexpr std::uint32_t kPoints = 1200;

struct Ticks {
  std::atomic<bool> at_work{false};
  std::uint32_t number = 0;
  TimeLine<kPoints> line;
  std::uint32_t entry_of[kPoints] = {};         // slot → entry in `points`
  std::uint32_t device_entry_of[kPoints] = {};  // … in `device_points`; 0: none
};
constinit Ticks g_ticks;

void write_point(Point& point, std::uint64_t now, std::uint64_t rss) noexcept {
  const Header& header = g_session.header();
  session::rewrite(std::atomic_ref(point.time_ns), now, [&]() noexcept {
    point.rss_bytes = rss;
    for (std::size_t at = 0; at < kSpaceCount; ++at)
      point.live_bytes[at] = header.spaces[at].live_bytes();
  });
}

void add_point(InHook hook, std::uint32_t tick, std::uint64_t now) noexcept {
  TimeLine<kPoints>& line = g_ticks.line;
  if (!line.wants(tick)) return;
  const std::uint32_t slot = line.slot(tick);
  if (slot == line.kNone) return;
  const std::uint64_t rss = g_session.header().health.rss_bytes.load(std::memory_order_relaxed);
  write_device_point(hook, now, g_ticks.device_entry_of[slot]);
  if (slot < line.count()) {
    write_point(g_session.points.at(g_ticks.entry_of[slot]), now, rss);
  } else if (g_session.points.append(hook, g_ticks.entry_of[slot], [&](Point& point) noexcept {
               write_point(point, now, rss);
             })) {
    line.added();
  }
  g_session.header().thinned.store(line.spacing(), std::memory_order_relaxed);
}

}  // namespace

void run_tick(InHook hook, ThreadState& thread, std::uint64_t now) noexcept {
  if (g_ticks.at_work.exchange(true, std::memory_order_acquire)) return;
  g_session.header().last_tick_ns.store(now, std::memory_order_relaxed);
  fold_unlaned(hook, thread);
  g_session.keep_alive(hook);
  helper::finish(hook, 0);  // does not wait: reaps a helper that has exited
  resolve_recovered(hook, now);
  stack::check_next_module(hook);
  if (stack::has_many_dead_modules()) session::g_forget_at.store(0, std::memory_order_relaxed);
  settle_preexisting_heap(hook);
  settle_object_heap(hook);
  check_limits(hook, now);
  const std::uint32_t tick = g_ticks.number++;
  add_point(hook, tick, now);
  add_checkpoint(hook, tick, now);
  g_ticks.at_work.store(false, std::memory_order_release);
}

void tick(InHook hook) noexcept {
  if (phase() == Phase::off) return;
  ThreadState* thread = current_thread(hook);
  if (phase() == Phase::waiting && begin_waiting_session(hook)) thread = current_thread(hook);
  if (thread != nullptr) read_clock(hook, *thread);
}

TickPause::TickPause() noexcept
    : holds_(!g_ticks.at_work.exchange(true, std::memory_order_acquire)) {}
TickPause::~TickPause() {
  if (holds_) g_ticks.at_work.store(false, std::memory_order_release);
}

void reset_ticks_after_fork(InHook hook) noexcept {
  g_ticks.at_work.store(false, std::memory_order_relaxed);
  g_ticks.number = 0;
  for (std::uint32_t& entry : g_ticks.device_entry_of) entry = 0;
  g_ticks.line.reset();
  reset_checkpoints_after_fork(hook);
}

}  // namespace oomrec::recorder
