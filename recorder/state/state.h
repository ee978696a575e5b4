// The state that all parts of the recorder share: constinit and trivially destructible, because
// hooks run before constructors and after destructors.
#pragma once

#include <atomic>
#include <cstdint>

#include "common/options/options.h"
#include "common/session/layout.h"
#include "recorder/live/block_hash.h"
#include "recorder/live/device_blocks.h"
#include "recorder/live/holder_table.h"
#include "recorder/live/object_bits.h"
#include "recorder/live/range_table.h"
#include "recorder/live/side_table.h"
#include "recorder/live/soft_limit.h"
#include "recorder/session/shortage.h"
#include "recorder/session/writer.h"

namespace oomrec::recorder {

enum class Phase : std::uint8_t {
  off,      // before start(), or abandoned
  waiting,  // a fork's child, not worth a session yet: events are only counted
  active,
};

inline constexpr std::uint64_t kLargeBytes = 64 * 1024;      // recorded exactly in sampled mode
inline constexpr std::uint64_t kPublishBytes = 64 * 1024;    // a thread's share of the totals
inline constexpr std::uint64_t kWaitingBytes = 1024 * 1024;  // allocated before a child's session
inline constexpr std::uint64_t kTickNs = 100'000'000;        // at most ten a second
inline constexpr std::uint64_t kRecoveredNs =
    10'000'000'000;  // alive this long after a failure: recovered

struct State {
  std::atomic<Phase> phase{Phase::off};
  std::atomic<Mode> mode{Mode::off};  // in force: exact falls back to sampled

  // Sampling in force: the first two double when tables are full.
  std::atomic<std::uint64_t> interval_bytes{512 * 1024};
  std::atomic<std::uint64_t> large_bytes{kLargeBytes};
  std::atomic<std::uint64_t> least_sample_bytes{0};              // that a sample stands for; 0: any
  std::atomic<std::uint64_t> finest_interval_bytes{512 * 1024};  // while there is memory

  // Number of this process image's session, in a page that a fork wipes: a thread that reads 0 is
  // in a child that was forked unseen. Threads compare it with the generation of their lane.
  std::atomic<std::uint32_t> no_generation{0};
  std::atomic<std::uint32_t>* generation = &no_generation;
  std::uint32_t last_generation = 0;

  // Events of threads without a lane, by space. The next thread with one adds them to its own.
  session::SpaceCounters unlaned[session::kLaneSpaces] = {};
  std::atomic<std::uint64_t> unlaned_events{0};
  std::atomic<std::uint64_t> waiting_bytes{0};
  std::atomic<bool> beginning{false};
  // Of the rest of the parent's heap, in a fork's child: recorder/process/inherited.h.
  std::uint32_t inherited_holder = 0;

  // Of the heap from before `oomrec attach`: recorder/process/preexisting.h.
  std::uint32_t preexisting_holder = 0;

  std::atomic<std::uint32_t> object_pool_holder{0};  // recorder/events/objects.h

  live::HolderTable holders;
  live::SideTable small_blocks;  // of the heap, recorded exactly
  live::BlockHash blocks;        // all others
  live::ObjectBits objects;      // which of them are objects of Python
  live::RangeTable ranges{holders};
  live::DeviceBlocks device_blocks;

  // Sampled mode records few blocks. False: not this one, and it is not the parent's.
  bool may_be_recorded(std::uint64_t address) const noexcept {
    return blocks.may_hold(address) || inherited_holder != 0 || small_blocks.used();
  }

  live::SoftLimit limit;
  std::atomic<bool> has_limit_or_rules{false};  // a soft limit, or rules of --fail
  bool heap_rules = false;  // of --fail: no event of the heap may take the fast path

  Options options;
  std::uint64_t budget_bytes = 0;
  std::uint64_t start_ns = 0;
  int pid = 0;
};

extern constinit State g_state;

// False in a vfork child, which has its parent's memory, and must leave its session alone.
bool same_process() noexcept;

inline Phase phase() noexcept { return g_state.phase.load(std::memory_order_relaxed); }
inline bool exact() noexcept { return g_state.mode.load(std::memory_order_relaxed) == Mode::exact; }
inline void drop(std::uint64_t events = 1) noexcept {
  session::g_session.header().dropped_events.fetch_add(events, std::memory_order_relaxed);
  session::count_shortage();
}

// --- How many of the program's blocks are recorded, which are fewer as tables fill up

// Called when exact recording has used up its budget. From now on blocks are sampled, finely at
// first, and the session says so. Blocks already in the tables stay exact.
void fall_back_to_sampling() noexcept;

// Halves the rate, down to a sample in `most` bytes: there is no memory, and nothing that could be
// forgotten or thinned.
inline constexpr std::uint64_t kCoarsestInterval = std::uint64_t{64} << 20;
void sample_coarser(std::uint64_t most) noexcept;

// Doubles it, up to the one that was asked for: there is memory again.
void sample_finer() noexcept;

// From now on a sample stands for at least so many bytes.
void sample_at_least(std::uint64_t bytes) noexcept;

}  // namespace oomrec::recorder
