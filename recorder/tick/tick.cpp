#include "recorder/tick/tick.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <span>

#include "common/system/files.h"
#include "recorder/devices/registry.h"
#include "recorder/failures/bundle_scheduler.h"
#include "recorder/helper/from_process.h"
#include "recorder/limits/near_limit.h"
#include "recorder/process/object_heap.h"
#include "recorder/process/preexisting.h"
#include "recorder/session/node_states.h"
#include "recorder/session/reuse.h"
#include "recorder/stack/stack.h"
#include "recorder/state/callbacks.h"
#include "recorder/state/clock.h"
#include "recorder/state/counters.h"
#include "recorder/state/state.h"
#include "recorder/state/time_line.h"

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
  update_preexisting_heap(hook);
  update_object_heap(hook);
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

using live::LargeHolder;
using session::Checkpoint;
using session::CheckpointRow;
using session::g_session;
using session::kCheckpointRows;
using session::kCheckpoints;

namespace {

struct Checkpoints {
  TimeLine<kCheckpoints> line;
  std::uint32_t entry_of[kCheckpoints] = {};  // slot → entry in `checkpoints`
  LargeHolder largest[kCheckpointRows] = {};
};
constinit Checkpoints g_checkpoints;

// Rows of one checkpoint: all of them share an eighth of the budget.
std::uint32_t most_rows() noexcept {
  const std::uint64_t share =
      g_state.budget_bytes / 8 / (std::uint64_t{kCheckpoints} * sizeof(CheckpointRow));
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(share, 16, kCheckpointRows));
}

// A reused entry keeps its rows if they suffice, so a small program has few.
void ensure_rows(InHook hook, Checkpoint& entry, std::uint32_t rows) noexcept {
  constexpr std::uint32_t kFewest = 16;
  if (entry.capacity >= rows) return;
  const std::uint32_t wanted = std::max(kFewest, std::bit_ceil(rows));
  std::uint32_t first = 0, count = 0, index = 0;
  while (count < wanted &&
         g_session.checkpoint_rows.append(hook, index, [](CheckpointRow&) noexcept {})) {
    if (count++ == 0) first = index;
  }
  if (count <= entry.capacity) return;
  entry.first_row = first;
  entry.capacity = count;
}

void write_row(CheckpointRow& row, const LargeHolder& of, std::uint32_t time_ms) noexcept {
  // It stays while a checkpoint has it, as whoever forgets it sees.
  session::g_node_states.touch(session::load_name(g_session.holders.at(of.holder)).node);
  const CheckpointRow now{of.holder, time_ms, static_cast<std::uint64_t>(of.live_bytes)};
  const std::uint64_t first_word = std::bit_cast<std::array<std::uint64_t, 2>>(now)[0];
  session::rewrite(std::atomic_ref(reinterpret_cast<std::uint64_t&>(row)), first_word,
                   [&]() noexcept { row.live_bytes = now.live_bytes; });
}

void write_checkpoint(InHook hook, Checkpoint& entry, std::uint64_t now,
                      std::span<const LargeHolder> largest) noexcept {
  const session::Header& header = g_session.header();
  const auto time_ms = static_cast<std::uint32_t>((now - header.start_monotonic_ns) / 1'000'000);
  session::rewrite(entry.time_ns, now, [&]() noexcept {
    ensure_rows(hook, entry, static_cast<std::uint32_t>(largest.size()));
    largest = largest.first(std::min<std::size_t>(largest.size(), entry.capacity));
    entry.rows = 0;
    for (const LargeHolder& row : largest)
      write_row(g_session.checkpoint_rows.at(entry.first_row + entry.rows++), row, time_ms);
    for (std::size_t at = 0; at < kSpaceCount; ++at)
      entry.live_bytes[at] = header.spaces[at].live_bytes();
  });
}

}  // namespace

void add_checkpoint(InHook hook, std::uint32_t tick, std::uint64_t now) noexcept {
  live::Candidates& candidates = g_state.holders.candidates();
  candidates.scan_next(hook);
  auto& line = g_checkpoints.line;
  if (!line.wants(tick)) return;
  std::span<LargeHolder> largest{g_checkpoints.largest, most_rows()};
  if (!candidates.largest(hook, largest)) return;
  const std::uint32_t slot = line.slot(tick);
  if (slot == line.kNone) return;
  std::uint32_t& entry = g_checkpoints.entry_of[slot];
  if (slot == line.count()) {
    if (!g_session.checkpoints.append(hook, entry, [](Checkpoint&) noexcept {})) return;
    line.added();
  }
  write_checkpoint(hook, g_session.checkpoints.at(entry), now, largest);
}

void reset_checkpoints_after_fork(InHook) noexcept { g_checkpoints.line.reset(); }

}  // namespace oomrec::recorder
