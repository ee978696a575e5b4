#include "recorder/process/preexisting.h"

#include "recorder/session/writer.h"
#include "recorder/stack/stack.h"
#include "recorder/state/counters.h"
#include "recorder/state/state.h"
#include "recorder/state/thread_state.h"

namespace oomrec::recorder {
namespace {

using session::g_session;

// The allocator does not say how many blocks it has given out.
constexpr std::uint64_t kBlocks = 1;

constexpr std::uint64_t kMostHolders = 16 * 1024;  // to add up in a tick: some 30 µs

}  // namespace

std::uint32_t preexisting_holder(InHook hook, Space space, std::uint32_t number) noexcept {
  const std::uint64_t frame = session::special_frame(session::SpecialFrame::preexisting, number);
  const std::uint32_t node = stack::intern(hook, group_node(hook, "main"), frame);
  return g_state.holders.find_or_add(hook, node, space, Api::inherited, session::kHolderEstimated);
}

void add_preexisting_heap(InHook hook, std::uint64_t bytes) noexcept {
  if (phase() != Phase::active || bytes == 0) return;
  const std::uint32_t holder = preexisting_holder(hook, Space::heap, 0);
  if (holder == 0) return drop();
  g_state.holders.grow(hook, holder, bytes, kBlocks);
  count_unlaned(Space::heap, {bytes, kBlocks, 0, bytes, 0});
  g_state.preexisting_holder = holder;
  // Every free then takes the slow path, which it takes in exact mode anyway.
  if (exact()) g_state.inherited_holder = holder;
}

void publish_preexisting(InHook hook) noexcept {
  if (ThreadState* const thread = current_thread(hook); thread != nullptr)
    fold_unlaned(hook, *thread);
}

void release_preexisting(InHook hook, std::uint64_t bytes) noexcept {
  g_state.holders.shrink_at_most(hook, g_state.preexisting_holder, bytes, 0);
}

void update_preexisting_heap(InHook hook) noexcept {
  const std::uint32_t own = g_state.preexisting_holder;
  const std::uint64_t holders = g_session.holders.size();
  if (own == 0 || exact() || holders > kMostHolders) return;
  const std::uint64_t total =
      g_session.header().spaces[static_cast<std::size_t>(Space::heap)].live_bytes();
  std::int64_t others = 0;
  for (std::uint32_t number = 1; number < holders; ++number) {
    if (number != own &&
        g_session.holders.at(number).space == static_cast<std::uint8_t>(Space::heap))
      others += live::live_bytes_of(number);
  }
  const std::int64_t rest = static_cast<std::int64_t>(total) - others;
  const std::uint64_t left = rest < 0 ? 0 : static_cast<std::uint64_t>(rest);
  const auto bytes = static_cast<std::uint64_t>(live::live_bytes_of(own));
  if (left < bytes) release_preexisting(hook, bytes - left);
}

}  // namespace oomrec::recorder
