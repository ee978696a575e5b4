// From a call into this library to a node of the session's trie.
#include "recorder/stack/capture.h"

#include <algorithm>

#include "recorder/session/view.h"
#include "recorder/session/writer.h"
#include "recorder/stack/intern.h"
#include "recorder/stack/odd_frames.h"
#include "recorder/stack/python.h"
#include "recorder/stack/rules.h"
#include "recorder/stack/unwind.h"

namespace oomrec::stack {
namespace {

constinit AddressRange g_own_code;

[[gnu::always_inline]] inline Registers registers_here() noexcept {
  Registers now;
  asm volatile("leaq 0(%%rip), %0\n\tmovq %%rsp, %1\n\tmovq %%rbp, %2"
               : "=r"(now.pc), "=r"(now.sp), "=r"(now.bp));
  return now;
}

// The caller's frame is the first that is not ours.
std::uint32_t capture_native(InHook hook, const Registers& here, ThreadStacks& thread,
                             bool* truncated) noexcept {
  Walk walk(hook, thread, here);
  while (g_own_code.holds(walk.frame().pc)) {
    if (walk.step(hook) != Step::stepped) {
      *truncated = true;
      return 0;
    }
  }
  return collect(hook, walk, thread.native, session::kMaxFrames, truncated);
}

bool holds_signal_frame(const NativeFrame* frames, std::uint32_t count) noexcept {
  return std::any_of(frames, frames + count, [](const NativeFrame& frame) { return frame.exact; });
}

// A module is gone: nothing that was found by address is known any more.
void forget_rules(InHook hook) noexcept {
  clear_rules(hook);
  python_forget_modules(hook);
  if (session::g_session.active()) {
    session::g_session.header().module_generation.fetch_add(1, std::memory_order_relaxed);
  }
}

}  // namespace

void set_own_code(const AddressRange& range) noexcept { g_own_code = range; }

void start() noexcept {
  const InHook hook = OutsideHooks::in_hook();
  start_modules(hook);
  start_rules(hook);
  start_intern(hook);
  const std::uint32_t slot = module_slot_at(hook, registers_here().pc);
  if (slot != 0) g_own_code = known_module(slot).mapped;
  start_odd_frames(hook);
  python_start();
}

[[gnu::noinline]] std::uint32_t capture(InHook hook, ThreadStacks& thread,
                                        std::uint32_t group) noexcept {
  bool native_cut = false;
  bool python_cut = false;
  bool merged_cut = false;
  const std::uint32_t native = capture_native(hook, registers_here(), thread, &native_cut);
  const bool in_handler = native_cut || holds_signal_frame(thread.native, native);
  const std::uint32_t python =
      python_frames(hook, thread.python, session::kMaxFrames, &python_cut, in_handler);
  const std::uint32_t count = merge(hook, thread.native, native, native_cut, thread.python, python,
                                    thread.merged, session::kMaxFrames, &merged_cut);
  bool truncated = native_cut || python_cut || merged_cut;
  const std::uint64_t cut = session::special_frame(session::SpecialFrame::truncated, 0);
  std::uint32_t node = group;
  if (truncated) {
    if (const std::uint32_t marked = intern(hook, node, cut); marked != 0) node = marked;
  }
  for (std::uint32_t i = count; i > 0; --i) {
    const std::uint32_t next = intern(hook, node, thread.merged[i - 1]);
    if (next == 0) {  // the trie is full: the longest known prefix, and a mark that more was there
      truncated = true;
      if (const std::uint32_t marked = intern(hook, node, cut); marked != 0) node = marked;
      break;
    }
    node = next;
  }
  if (truncated && session::g_session.active()) {
    session::g_session.header().truncated_stacks.fetch_add(1, std::memory_order_relaxed);
  }
  return node;
}

void forget_thread(InHook, ThreadStacks& thread) noexcept {
  for (StackRange& range : thread.ranges) range = {};
  thread.next_range = 0;
}

void forget_modules(InHook hook) noexcept {
  if (!modules_still_hold(hook)) forget_rules(hook);
}

void check_a_module(InHook hook) noexcept {
  if (!next_module_still_holds(hook)) forget_rules(hook);
}

void forget_session(InHook hook) noexcept {
  forget_module_ids(hook);
  forget_nodes(hook);
  python_forget_session(hook);
}

}  // namespace oomrec::stack
