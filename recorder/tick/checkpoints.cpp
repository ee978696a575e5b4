#include "recorder/tick/checkpoints.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <span>

#include "recorder/session/node_states.h"
#include "recorder/session/reuse.h"
#include "recorder/state/state.h"
#include "recorder/state/time_line.h"

namespace oomrec::recorder {

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
