#include "recorder/forget/forgotten_rows.h"

#include <algorithm>
#include <atomic>

#include "common/session/view.h"
#include "recorder/session/node_states.h"
#include "recorder/session/writer.h"
#include "recorder/stack/intern.h"
#include "recorder/stack/stack.h"
#include "recorder/state/state.h"
#include "recorder/state/thread_state.h"

namespace oomrec::recorder {

using session::FrameKind;
using session::g_session;
using session::SpecialFrame;

namespace {

constinit std::atomic<std::uint32_t> g_root{0};
constinit std::atomic<std::uint32_t> g_kept{0};  // rows that stay

// Lines that allocate again and again keep their rows; more in a larger recording.
std::uint32_t most_kept() noexcept {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(g_state.budget_bytes >> 12, 16 * 1024));
}

bool is_special(std::uint64_t frame, SpecialFrame what) noexcept {
  return session::kind_of(frame) == FrameKind::special && session::special_of(frame) == what;
}

std::uint32_t root(InHook hook) noexcept {
  if (const std::uint32_t known = g_root.load(std::memory_order_relaxed)) return known;
  const std::uint32_t node = stack::intern(hook, group_node(hook, "forgotten stacks"),
                                           session::special_frame(SpecialFrame::forgotten, 0));
  std::uint32_t none = 0;
  if (node != 0 && g_root.compare_exchange_strong(none, node))
    session::g_node_states.refer(node);  // for ever
  return node;
}

}  // namespace

bool is_forgotten_row(std::uint32_t node) noexcept {
  const session::Node entry = g_session.node(node);
  return is_special(entry.frame, SpecialFrame::forgotten) ||
         (entry.parent != 0 &&
          is_special(g_session.node(entry.parent).frame, SpecialFrame::forgotten));
}

std::uint32_t forgotten_node_of(InHook hook, std::uint32_t node, NewRow new_row) noexcept {
  if (is_forgotten_row(node)) return root(hook);
  std::uint64_t frame = g_session.node(node).frame;
  const bool may_have_code = g_session.codes.size() > 1;  // otherwise nothing to look for
  for (std::uint32_t at = may_have_code ? node : 0; at != 0;) {
    const session::Node entry = g_session.node(at);
    if (session::has_code(entry.frame)) {
      frame = entry.frame;
      break;
    }
    at = entry.parent;
  }
  if (session::kind_of(frame) == FrameKind::special) return root(hook);
  const std::uint32_t of_all = root(hook);
  const bool may_keep = g_kept.load(std::memory_order_relaxed) < most_kept();
  const bool may_add = new_row == NewRow::added || may_keep;
  std::uint32_t row = 0;
  if (of_all != 0) row = may_add ? stack::intern(hook, of_all, frame) : stack::find(of_all, frame);
  if (row == 0) return of_all;
  const bool is_new = (session::g_node_states.load(row) & session::NodeStates::kReferences) == 0;
  if (is_new && may_keep) {
    g_kept.fetch_add(1, std::memory_order_relaxed);
    session::g_node_states.refer(row);
  }
  return row;
}

std::uint32_t forgotten_holder_of(InHook hook, std::uint32_t node, Space space, Api api) noexcept {
  const std::uint32_t row = forgotten_node_of(hook, node, NewRow::added);
  return row == 0 ? 0 : g_state.holders.find_or_add_brief(hook, row, space, api);
}

void reset_forgotten_rows_after_fork(InHook) noexcept {
  g_root.store(0, std::memory_order_relaxed);
  g_kept.store(0, std::memory_order_relaxed);
}

}  // namespace oomrec::recorder
