#include "recorder/state/sampling_mode.h"

#include "recorder/session/writer.h"
#include "recorder/state/state.h"

namespace oomrec::recorder {

using session::g_session;
using session::Header;

namespace {

constinit std::atomic<std::uint64_t> g_coarser_at{~std::uint64_t{0}};  // the tick of the last time

}  // namespace

void fall_back_to_sampling() noexcept {
  g_state.mode.store(Mode::sampled, std::memory_order_relaxed);
  g_session.header().mode_now.store(static_cast<std::uint32_t>(Mode::sampled),
                                    std::memory_order_relaxed);
  g_session.arena.release_reserve();
}

void sample_coarser() noexcept {
  if (exact()) return fall_back_to_sampling();
  Header& header = g_session.header();
  const std::uint64_t tick = header.last_tick_ns.load(std::memory_order_relaxed);
  const std::uint64_t interval = g_state.interval_bytes.load(std::memory_order_relaxed);
  if (interval >= kCoarsestInterval || g_coarser_at.exchange(tick) == tick) return;
  const std::uint64_t large = g_state.large_bytes.load(std::memory_order_relaxed);
  g_state.interval_bytes.store(interval * 2, std::memory_order_relaxed);
  g_state.large_bytes.store(large * 2, std::memory_order_relaxed);
  std::atomic_ref(header.interval_bytes).store(interval * 2, std::memory_order_relaxed);
  std::atomic_ref(header.large_bytes).store(large * 2, std::memory_order_relaxed);
}

}  // namespace oomrec::recorder
