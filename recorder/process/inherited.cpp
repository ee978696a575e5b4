#include "recorder/process/inherited.h"

#include <algorithm>
#include <array>
#include <span>

#include "common/session/view.h"
#include "recorder/session/writer.h"
#include "recorder/stack/copied_stacks.h"
#include "recorder/state/state.h"
#include "recorder/state/thread_state.h"

namespace oomrec::recorder {
namespace {

using session::g_session;
using session::Holder;
using stack::CopiedStacks;

constexpr std::uint64_t kSmallest = 64 * 1024;  // the rest is one holder

struct Inherited {
  CopiedStacks stacks;
  struct Row {
    std::uint64_t bytes, count;
    std::uint8_t flags;
    std::uint32_t holder;  // in the child's session; 0: none yet
  };
  std::array<Row, CopiedStacks::kMost> rows{};  // of the stacks
};
constinit Inherited g_inherited{};

bool is_worth_a_name(const Holder& holder) noexcept {
  return static_cast<Space>(holder.space) == Space::heap && holder.live_bytes >= kSmallest &&
         holder.live_bytes <= INT64_MAX;
}

// Frees are assigned by size, so one of the figures may reach zero first.
void shrink(InHook hook, std::uint32_t number, std::uint64_t bytes) noexcept {
  g_state.holders.shrink_at_most(hook, number, bytes, 1);
  Holder& holder = g_session.holders.at(number);
  if (holder.live_bytes != 0 && holder.live_count != 0) return;
  holder.live_bytes.store(0, std::memory_order_relaxed);
  holder.live_count.store(0, std::memory_order_relaxed);
}

// An allocator's block is a little larger than what was requested.
bool is_block_of(std::uint64_t usable_bytes, std::uint64_t bytes, std::uint64_t count) noexcept {
  const std::uint64_t mean = count == 0 ? 0 : bytes / count;
  return mean != 0 && usable_bytes >= mean && usable_bytes - mean <= 64 + mean / 16;
}

std::span<Inherited::Row> rows() noexcept {
  return std::span{g_inherited.rows}.first(g_inherited.stacks.count());
}

// In the child's session: the one whose blocks have this size, else the rest; if nothing is left of
// that, the largest.
std::uint32_t holder_of_block(std::uint64_t usable_bytes) noexcept {
  std::uint32_t largest = 0;
  std::uint64_t most = 0;
  for (const Inherited::Row& row : rows()) {
    if (row.holder == 0) continue;
    const Holder& holder = g_session.holders.at(row.holder);
    if (is_block_of(usable_bytes, holder.live_bytes, holder.live_count)) return row.holder;
    if (holder.live_bytes > most) {
      most = holder.live_bytes;
      largest = row.holder;
    }
  }
  const std::uint32_t rest = g_state.inherited_holder;
  const bool has_rest = rest != 0 && g_session.holders.at(rest).live_bytes != 0;
  return has_rest ? rest : largest;
}

}  // namespace

void note_inherited(InHook hook) noexcept {
  CopiedStacks& stacks = g_inherited.stacks;
  stacks.clear();
  std::array<live::LargeHolder, 2 * CopiedStacks::kMost> rows;  // of all spaces
  std::span<live::LargeHolder> largest{rows};
  if (!g_state.holders.candidates().largest(hook, largest)) return;
  for (const live::LargeHolder& row : largest) {
    const Holder& holder = g_session.holders.at(row.holder);
    if (!is_worth_a_name(holder) || !stacks.add(hook, holder.node)) continue;
    g_inherited.rows[stacks.count() - 1] = {holder.live_bytes, holder.live_count, holder.flags, 0};
    if (stacks.count() == CopiedStacks::kMost) break;
  }
}

void add_inherited_heap(InHook hook, std::uint32_t node, std::uint64_t live_bytes,
                        std::uint64_t live_count) noexcept {
  const std::uint64_t marker = session::special_frame(session::SpecialFrame::inherited, 0);
  constexpr auto kFlags = static_cast<std::uint8_t>(~session::kHolderCandidate);
  for (std::uint32_t i = 0; i < g_inherited.stacks.count(); ++i) {
    Inherited::Row& row = g_inherited.rows[i];
    if (row.count == 0 || row.bytes > live_bytes) continue;  // freed before the session began
    const std::uint32_t group = group_node(hook, g_inherited.stacks.group(i));
    const std::uint32_t root = stack::intern(hook, group, marker);
    const std::uint32_t leaf = root == 0 ? 0 : g_inherited.stacks.intern(hook, i, root);
    if (leaf == 0) continue;
    row.holder =
        g_state.holders.find_or_add(hook, leaf, Space::heap, Api::inherited, row.flags & kFlags);
    if (row.holder == 0) continue;
    g_state.holders.grow(hook, row.holder, row.bytes, row.count);
    live_bytes -= row.bytes;
    live_count -= row.count < live_count ? row.count : live_count;
  }
  if (live_count == 0 || live_bytes == 0) live_count = live_bytes = 0;
  g_state.inherited_holder =
      g_state.holders.find_or_add(hook, node, Space::heap, Api::inherited, 0);
  if (g_state.inherited_holder != 0)
    g_state.holders.grow(hook, g_state.inherited_holder, live_bytes, live_count);
}

void release_inherited(InHook hook, std::uint64_t usable_bytes) noexcept {
  if (phase() == Phase::active) {
    if (const std::uint32_t number = holder_of_block(usable_bytes); number != 0)
      shrink(hook, number, usable_bytes);
    return;
  }
  for (Inherited::Row& row : rows()) {
    if (!is_block_of(usable_bytes, row.bytes, row.count)) continue;
    row.bytes -= std::min(row.bytes, usable_bytes);
    --row.count;
    return;
  }
}

}  // namespace oomrec::recorder
