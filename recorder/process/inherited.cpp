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

// An allocator's block is a little larger than what was requested.
bool is_block_of(std::uint64_t usable_bytes, std::uint64_t bytes, std::uint64_t count) noexcept {
  const std::uint64_t mean = count == 0 ? 0 : bytes / count;
  return mean != 0 && usable_bytes >= mean && usable_bytes - mean <= 64 + mean / 16;
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
  g_state.inherited_holder =
      g_state.holders.find_or_add(hook, node, Space::heap, Api::inherited, 0);
  if (g_state.inherited_holder != 0)
    g_state.holders.grow(hook, g_state.inherited_holder, live_bytes, live_count);
}

void release_inherited(InHook hook, std::uint64_t usable_bytes) noexcept {
  std::uint32_t number = g_state.inherited_holder;
  const bool has_session = phase() == Phase::active;
  for (std::uint32_t i = 0; i < g_inherited.stacks.count(); ++i) {
    Inherited::Row& row = g_inherited.rows[i];
    if (has_session && row.holder == 0) continue;
    const std::uint64_t bytes =
        has_session ? g_session.holders.at(row.holder).live_bytes.load() : row.bytes;
    const std::uint64_t count =
        has_session ? g_session.holders.at(row.holder).live_count.load() : row.count;
    if (!is_block_of(usable_bytes, bytes, count)) continue;
    number = row.holder;
    if (!has_session) {
      row.bytes -= std::min(row.bytes, usable_bytes);
      --row.count;
    }
    break;
  }
  if (has_session && number != 0) g_state.holders.shrink_at_most(hook, number, usable_bytes, 1);
}

}  // namespace oomrec::recorder
