// A program that runs for long: each of its blocks has a stack that there has not been before.
#pragma once

#include <doctest/doctest.h>

#include <atomic>
#include <map>
#include <random>
#include <string>

#include "common/session/view.h"
#include "common/system/files.h"
#include "recorder/forget/forget.h"
#include "recorder/forget/forgotten_rows.h"
#include "recorder/session/node_states.h"
#include "recorder/state/clock.h"
#include "recorder/state/thread_state.h"
#include "recorder/tick/tick.h"
#include "tests/unit/recorder/running.h"
#include "tests/unit/sanitized.h"

namespace oomrec::running {

// Under a sanitizer there are fewer blocks, but rounds as often.
inline void need_to_forget(Mode mode) {
  const bool is_new = !recorder::is_active();
  need(mode);
  if (kSanitized && is_new) recorder::start_forgetting(recorder::g_state.budget_bytes, 6000);
}
constexpr std::uint32_t scaled(std::uint32_t whole) { return kSanitized ? whole / 4 : whole; }

// A stack that there has not been before, from now on the calling thread's.
inline std::uint32_t new_stack() {
  static std::atomic<std::uint32_t> latest{0};
  return doubles::t_stack = ++latest;
}

// The number in the frame of a stack of ours.
inline std::uint32_t stack_of(std::uint32_t node) {
  return static_cast<std::uint32_t>(session::offset_of(session::g_session.node(node).frame));
}

// The stacks of all live blocks of the heap in the session, as a reader finds them, by address.
inline std::map<std::uint64_t, std::uint32_t> recorded_nodes() {
  using namespace session;
  std::map<std::uint64_t, std::uint32_t> nodes;
  const View view = g_session.view();
  for (std::uint32_t i = 1; i < g_session.side_pages.size(); ++i)
    view.for_each_small_block(i,
                              [&](const SmallBlock& block) { nodes[block.address] = block.node; });
  for (std::uint32_t i = 1; i < g_session.live_blocks.size(); ++i) {
    LiveBlock block;
    if (!view.read(TableId::live_blocks, i, block) || block.address == 0) continue;
    Holder holder;
    REQUIRE(view.read(TableId::holders, block.holder, holder));
    nodes[block.address] = holder.node;
  }
  return nodes;
}

// What all holders of the heap have allocated, and how much of that in rows for forgotten stacks.
struct EverAllocated {
  std::uint64_t bytes = 0, count = 0, forgotten = 0;
};
inline EverAllocated ever_allocated() {
  EverAllocated sum;
  const session::View view = session::g_session.view();
  for (std::uint32_t i = 1; i < session::g_session.holders.size(); ++i) {
    session::Holder holder;
    REQUIRE(view.holder(i, holder));
    if (holder.node == 0 || holder.space != static_cast<std::uint8_t>(Space::heap)) continue;
    sum.bytes += holder.total_bytes;
    sum.count += holder.total_count;
    if (recorder::is_forgotten_row(holder.node)) sum.forgotten += holder.total_count;
  }
  return sum;
}

// How large what would grow for ever has become.
struct Sizes {
  std::uint32_t nodes, frames, holders, full_holders;
  std::uint64_t recording_bytes, index_bytes;

  // Rounds do not end at the same number of blocks, so that the largest of them grows a little.
  bool is_constant(const Sizes& later) const {
    const auto same = [](std::uint64_t before, std::uint64_t after) {
      return after <= before + before / 8 + 500;
    };
    return same(nodes, later.nodes) && same(frames, later.frames) && same(holders, later.holders) &&
           same(full_holders, later.full_holders) && same(recording_bytes, later.recording_bytes) &&
           same(index_bytes, later.index_bytes);
  }
};
inline Sizes sizes() {
  const session::Session& now = session::g_session;
  return {now.nodes.size(),        now.frames.size(),           now.holders.size(),
          now.full_holders.size(), now.arena.populated_bytes(), session::g_index_bytes};
}
inline doctest::String toString(const Sizes& sizes) {
  return ("nodes " + std::to_string(sizes.nodes) + ", frames " + std::to_string(sizes.frames) +
          ", holders " + std::to_string(sizes.holders) + ", full " +
          std::to_string(sizes.full_holders) + ", bytes " + std::to_string(sizes.recording_bytes) +
          " and " + std::to_string(sizes.index_bytes))
      .c_str();
}

inline std::uint64_t forgotten_stacks() { return session::g_session.header().forgotten_stacks; }

// The next tick, an hour ahead of time: there are no others.
inline void tick() {
  static std::uint64_t now = system::monotonic_ns() + 3600 * std::uint64_t{1'000'000'000};
  now += recorder::kTickNs;
  recorder::ThreadState* const thread = recorder::current_thread(kHook);
  if (thread != nullptr) recorder::run_tick(kHook, *thread, now);
}

// Blocks at fixed places, each replaced at random by one of the same size.
class Churn {
 public:
  using BytesOf = std::uint64_t (*)(std::uint32_t place);

  Churn(std::uint64_t first, std::uint32_t places, BytesOf bytes_of)
      : first_{first}, places_{places}, bytes_of_{bytes_of} {}
  ~Churn() {
    for (const auto& [address, stack] : stacks_) release(address, bytes_at(address));
  }

  // Ticks, which write checkpoints, come by number of blocks, not by time.
  void replace(std::uint32_t blocks) {
    for (std::uint32_t i = 0; i < blocks; ++i) {
      if (++replaced_ % kBlocksOfTick == 0) tick();
      const std::uint64_t address = address_of(static_cast<std::uint32_t>(random_() % places_));
      std::uint32_t& stack = stacks_[address];
      if (stack != 0) release(address, bytes_at(address));
      stack = new_stack();
      allocate(address, bytes_at(address));
    }
  }
  void replace_each() {
    for (std::uint32_t place = 0; place < places_; ++place) {
      const std::uint64_t address = address_of(place);
      std::uint32_t& stack = stacks_[address];
      if (stack != 0) release(address, bytes_at(address));
      stack = new_stack();
      allocate(address, bytes_at(address));
    }
  }

  // Whether the recording has the stack of each block.
  bool is_recorded() const {
    const auto nodes = recorded_nodes();
    for (const auto& [address, stack] : stacks_) {
      const auto found = nodes.find(address);
      if (found == nodes.end() || stack_of(found->second) != stack ||
          session::g_node_states.load(found->second) == 0)
        return false;
    }
    return true;
  }

 private:
  static constexpr std::uint64_t kApart = 256;
  static constexpr std::uint32_t kBlocksOfTick = 1000;

  std::uint64_t address_of(std::uint32_t place) const { return first_ + place * kApart; }
  std::uint64_t bytes_at(std::uint64_t address) const {
    return bytes_of_(static_cast<std::uint32_t>((address - first_) / kApart));
  }

  const std::uint64_t first_;
  const std::uint32_t places_;
  const BytesOf bytes_of_;
  std::mt19937_64 random_{11};
  std::uint32_t replaced_ = 0;
  std::map<std::uint64_t, std::uint32_t> stacks_;  // the oracle
};

// Millions of blocks, each of another stack, 500 at a time.
inline void check_simulated_month(std::uint32_t blocks, Churn::BytesOf bytes_of) {
  Churn kept{0x1000'0000, 100, bytes_of}, replaced{0x1100'0000, 400, bytes_of};
  kept.replace_each();
  replaced.replace_each();
  const std::uint64_t before = forgotten_stacks();
  replaced.replace(blocks / 2);
  const Sizes at_half = sizes();
  replaced.replace(blocks / 2);
  CHECK(kept.is_recorded());
  CHECK(replaced.is_recorded());

  const session::Header& header = session::g_session.header();
  CHECK(header.dropped_events == 0);
  CHECK(header.truncated_stacks == 0);
  const EverAllocated ever = ever_allocated();
  CHECK(ever.count == totals(Space::heap).allocated_count);
  CHECK(ever.bytes == totals(Space::heap).allocated_bytes);
  CHECK(ever.forgotten > blocks / 4);
  if (kSanitized) return;  // not long enough
  INFO("then " << toString(at_half) << ", now " << toString(sizes()));
  CHECK(at_half.is_constant(sizes()));
  CHECK(at_half.nodes < blocks / 4);
  // Stacks and their rows, but not the latest.
  CHECK(ever.forgotten > blocks / 10 * 8);
  CHECK(forgotten_stacks() - before > blocks / 10 * 8);
  CHECK(forgotten_stacks() - before < std::uint64_t{blocks} * 2);
}

// However old the stack of a live block is, and however small the block.
inline void check_old_blocks_stay(std::uint32_t blocks, Churn::BytesOf bytes_of) {
  Churn kept{0x1200'0000, 50, bytes_of}, replaced{0x1300'0000, 400, bytes_of};
  kept.replace_each();
  const auto nodes = recorded_nodes();
  const std::uint64_t before = forgotten_stacks();
  for (int i = 0; i < 4; ++i) {
    replaced.replace(blocks / 4);
    REQUIRE(kept.is_recorded());
  }
  CHECK(forgotten_stacks() - before > blocks / 2);
  const auto now = recorded_nodes();
  for (const auto& [address, node] : nodes)
    if (now.contains(address) && address < 0x1300'0000) CHECK(now.at(address) == node);
}

}  // namespace oomrec::running
