#include "recorder/state/state.h"

#include <algorithm>

#include "common/system/files.h"
#include "recorder/session/writer.h"

namespace oomrec::recorder {

constinit State g_state;

bool same_process() noexcept {
  return system::is_sandboxed() || system::process_id() == g_state.pid;
}

using session::g_session;
using session::Header;

namespace {

// Nearly as good as exact, where the memory suffices; else samples are thinned.
constexpr std::uint64_t kFineInterval = std::uint64_t{16} << 10;

void set_interval(std::uint64_t interval, std::uint64_t large) noexcept {
  Header& header = g_session.header();
  g_state.interval_bytes.store(interval, std::memory_order_relaxed);
  g_state.large_bytes.store(large, std::memory_order_relaxed);
  std::atomic_ref(header.interval_bytes).store(interval, std::memory_order_relaxed);
  std::atomic_ref(header.large_bytes).store(large, std::memory_order_relaxed);
}

}  // namespace

void fall_back_to_sampling() noexcept {
  if (!exact()) return;
  const std::uint64_t interval = g_state.interval_bytes.load(std::memory_order_relaxed);
  set_interval(std::min(interval, kFineInterval),
               std::min(g_state.large_bytes.load(), kFineInterval));
  g_state.finest_interval_bytes.store(g_state.interval_bytes, std::memory_order_relaxed);
  g_state.mode.store(Mode::sampled, std::memory_order_relaxed);
  g_session.header().mode_now.store(static_cast<std::uint32_t>(Mode::sampled),
                                    std::memory_order_relaxed);
  g_session.arena.release_reserve();
}

void sample_coarser(std::uint64_t most) noexcept {
  const std::uint64_t interval = g_state.interval_bytes.load(std::memory_order_relaxed);
  if (interval * 2 <= std::min(most, kCoarsestInterval))
    set_interval(interval * 2, g_state.large_bytes.load(std::memory_order_relaxed) * 2);
}

// A block of less than large_bytes may have been left out, so that bound stays.
void sample_finer() noexcept {
  const std::uint64_t interval = g_state.interval_bytes.load(std::memory_order_relaxed) / 2;
  if (interval < g_state.finest_interval_bytes.load(std::memory_order_relaxed)) return;
  const std::uint64_t least = g_state.least_sample_bytes.load(std::memory_order_relaxed);
  g_state.least_sample_bytes.store(std::min(least, interval), std::memory_order_relaxed);
  set_interval(interval, g_state.large_bytes.load(std::memory_order_relaxed));
}

void sample_at_least(std::uint64_t bytes) noexcept {
  g_state.least_sample_bytes.store(bytes, std::memory_order_relaxed);
  std::uint64_t interval = g_state.interval_bytes.load(std::memory_order_relaxed);
  const std::uint64_t large = g_state.large_bytes.load(std::memory_order_relaxed);
  while (interval < bytes) interval *= 2;
  set_interval(interval, std::max(large, bytes));  // a smaller one may have been thinned away
}

}  // namespace oomrec::recorder
