#include "recorder/forget/references.h"

#include <algorithm>
#include <atomic>

#include "common/session/small_block.h"
#include "recorder/forget/forgotten_rows.h"
#include "recorder/live/full_holders.h"
#include "recorder/session/node_states.h"
#include "recorder/session/reuse.h"
#include "recorder/session/writer.h"
#include "recorder/state/growth.h"
#include "recorder/state/state.h"
#include "recorder/state/thread_state.h"
#include "recorder/tick/tick.h"

namespace oomrec::recorder {

using session::g_node_states;
using session::g_session;

namespace {

constexpr std::uint32_t kSlotsAtOnce = 512;
constexpr std::uint32_t kEntriesAtOnce = 256;

// Rows of each checkpoint that keep their stack although it has no live memory any more: the
// largest, more in a larger recording. The others are summed up with other forgotten stacks.
std::uint32_t rows_kept() noexcept {
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(g_state.budget_bytes >> 21, 2, 16));
}

// Claims the nodes of the next entries. True: those were the last.
template <class T>
bool claim_nodes(session::Table<T>& table, std::uint32_t& entry) noexcept {
  for (std::uint32_t i = 0; i < kEntriesAtOnce && entry < table.size(); ++i)
    g_node_states.touch(table.at(entry++).node);
  return entry >= table.size();
}

}  // namespace

void References::next_table() noexcept {
  table_ = static_cast<Table>(static_cast<std::uint8_t>(table_) + 1);
  entry_ = 1;
}

bool References::claim_next(InHook hook) noexcept {
  switch (table_) {
    case Table::lanes:
      if (entry_ < g_session.lanes.size()) {
        claim_lane(entry_);
        return false;
      }
      break;
    case Table::failures:
      if (!claim_nodes(g_session.failures, entry_)) return false;
      break;
    case Table::sent_signals:
      if (!claim_nodes(g_session.sent_signals, entry_)) return false;
      break;
    case Table::checkpoints: {
      const TickPause pause;  // a tick writes checkpoints
      if (!pause) return false;
      if (entry_ < g_session.checkpoints.size()) {
        claim_checkpoint(hook, entry_++);
        return false;
      }
      break;
    }
    case Table::growth:
      if (!claim_growth()) return false;
      break;
    case Table::none:
      return true;
  }
  next_table();
  return table_ == Table::none;
}

void References::claim_lane(std::uint32_t number) noexcept {
  session::Lane& lane = g_session.lanes.at(number);
  if (slot_ == 0) {
    if (lane.in_flight.bytes.load(std::memory_order_acquire) != 0)
      g_node_states.touch(lane.in_flight.node.load(std::memory_order_relaxed));
    if (const ThreadState* const thread = thread_of_lane(number))
      g_node_states.touch(thread->released_node.load(std::memory_order_acquire));
    const session::HolderSum* const sums = g_session.sums(number);
    for (std::uint32_t i = 0; sums != nullptr && i < lane.sums; ++i)
      g_node_states.touch(sums[i].node.load(std::memory_order_acquire));
  }
  const session::Slot* const slots = g_session.ring(number);
  const std::uint32_t end = slots == nullptr ? 0 : std::min(slot_ + kSlotsAtOnce, lane.ring_slots);
  for (; slot_ < end; ++slot_) {
    const std::uint64_t word = slots[slot_].second.load(std::memory_order_acquire);
    g_node_states.touch(static_cast<std::uint32_t>(word >> 32) & (session::kRingNodes - 1));
  }
  if (slots != nullptr && slot_ < lane.ring_slots) return;
  slot_ = 0;
  ++entry_;
}

void References::claim_checkpoint(InHook hook, std::uint32_t number) noexcept {
  const session::Checkpoint& checkpoint = g_session.checkpoints.at(number);
  const std::uint32_t kept = rows_kept();
  for (std::uint32_t i = 0; i < checkpoint.rows; ++i) {
    session::CheckpointRow& row = g_session.checkpoint_rows.at(checkpoint.first_row + i);
    if (row.holder == 0) continue;
    const session::HolderName name = session::load_name(g_session.holders.at(row.holder));
    if (name.node == 0) continue;
    if (i < kept || live::live_bytes_of(row.holder) > 0 || is_forgotten_row(name.node)) {
      g_node_states.touch(name.node);
      continue;
    }
    const std::uint32_t forgotten = forgotten_holder_of(
        hook, name.node, static_cast<Space>(name.space), static_cast<Api>(name.api));
    if (forgotten != 0)
      std::atomic_ref(row.holder).store(forgotten, std::memory_order_release);
    else
      g_node_states.touch(name.node);
  }
}

}  // namespace oomrec::recorder
