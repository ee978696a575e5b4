#include "recorder/forget/forgotten_rows.h"

#include "common/session/view.h"
#include "recorder/session/node_states.h"
#include "recorder/session/writer.h"
#include "recorder/stack/stack.h"
#include "recorder/state/state.h"
#include "recorder/state/thread_state.h"

namespace oomrec::recorder {

using session::FrameKind;
using session::g_session;
using session::SpecialFrame;

namespace {

constinit std::uint32_t g_root = 0;  // used by the thread at work

bool is_special(std::uint64_t frame, SpecialFrame what) noexcept {
  return session::kind_of(frame) == FrameKind::special && session::special_of(frame) == what;
}

std::uint32_t root(InHook hook) noexcept {
  if (g_root != 0) return g_root;
  g_root = stack::intern(hook, group_node(hook, "forgotten stacks"),
                         session::special_frame(SpecialFrame::forgotten, 0));
  session::g_node_states.refer(g_root);  // for ever
  return g_root;
}

}  // namespace

bool is_forgotten_row(std::uint32_t node) noexcept {
  const session::Node entry = g_session.node(node);
  return is_special(entry.frame, SpecialFrame::forgotten) ||
         (entry.parent != 0 &&
          is_special(g_session.node(entry.parent).frame, SpecialFrame::forgotten));
}

std::uint32_t forgotten_node_of(InHook hook, std::uint32_t node) noexcept {
  if (is_forgotten_row(node)) return root(hook);
  std::uint64_t frame = g_session.node(node).frame;
  for (std::uint32_t at = node; at != 0;) {
    const session::Node entry = g_session.node(at);
    if (session::kind_of(entry.frame) == FrameKind::python) {
      frame = entry.frame;
      break;
    }
    at = entry.parent;
  }
  if (session::kind_of(frame) == FrameKind::special) return root(hook);
  const std::uint32_t row = root(hook) == 0 ? 0 : stack::intern(hook, g_root, frame);
  return row != 0 ? row : g_root;
}

std::uint32_t forgotten_holder_of(InHook hook, std::uint32_t node, Space space, Api api) noexcept {
  const std::uint32_t row = forgotten_node_of(hook, node);
  return row == 0 ? 0 : g_state.holders.find_or_add_brief(hook, row, space, api);
}

void reset_forgotten_rows_after_fork(InHook) noexcept { g_root = 0; }

}  // namespace oomrec::recorder
