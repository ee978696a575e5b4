// From a call into this library to a node of the session's trie.
#include "recorder/stack/capture.h"

#include <algorithm>

#include "recorder/session/view.h"
#include "recorder/session/writer.h"
#include "recorder/stack/intern.h"
#include "recorder/stack/memo.h"
#include "recorder/stack/odd_frames.h"
#include "recorder/stack/python.h"
#include "recorder/stack/rules.h"

namespace oomrec::stack {
namespace {

constinit AddressRange g_own_code;

[[gnu::always_inline]] inline Registers registers_here() noexcept {
  Registers now;
  asm volatile("leaq 0(%%rip), %0\n\tmovq %%rsp, %1\n\tmovq %%rbp, %2"
               : "=r"(now.pc), "=r"(now.sp), "=r"(now.bp));
  return now;
}

// The program's part of a stack.
NativeStack without_own_frames(NativeStack stack) noexcept {
  while (stack.count != 0 && g_own_code.holds(stack.frames->pc)) {
    ++stack.frames;
    --stack.count;
  }
  stack.truncated |= stack.count == 0 || stack.count > session::kMaxFrames;
  stack.count = std::min(stack.count, session::kMaxFrames);
  stack.reused = std::min(stack.reused, stack.count);
  return stack;
}

bool holds_signal_frame(const NativeStack& stack) noexcept {
  return std::any_of(stack.frames, stack.frames + stack.count,
                     [](const NativeFrame& frame) { return frame.exact; });
}

// A module is gone: nothing that was found by address is known any more.
void forget_rules(InHook hook) noexcept {
  forget_memos();
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

namespace {

// How many frames, the outermost, are known to be interned as they were. Python frames change
// without a native one: where there are some, words are compared instead.
std::uint32_t known_nodes(const NodeMemo& memo, std::uint32_t root,
                          const NativeStack& native) noexcept {
  return memo.all_native && memo.root == root ? std::min(native.reused, memo.count) : 0;
}

// The node of a stack below `root`: of its outermost frames `known` are the thread's last stack's,
// then come `words`, innermost first. *full: the trie has no room, and this is the longest prefix.
std::uint32_t intern_stack(InHook hook, NodeMemo& memo, std::uint32_t root, std::uint32_t known,
                           const std::uint64_t* words, std::uint32_t count, bool* full) noexcept {
  if (memo.root != root) {
    memo.root = root;
    memo.count = 0;
  }
  std::uint32_t comparable = memo.count;
  std::uint32_t node = known == 0 ? root : memo.nodes[known - 1];
  for (std::uint32_t i = known; count > 0; ++i) {
    const std::uint64_t word = words[--count];
    if (i < comparable && memo.words[i] == word) {
      node = memo.nodes[i];
      continue;
    }
    comparable = 0;
    const std::uint32_t next = intern(hook, node, word);
    memo.count = i;
    if (next == 0) {
      *full = true;
      return node;
    }
    memo.words[i] = word;
    memo.nodes[i] = node = next;
    memo.count = i + 1;
  }
  return node;
}

}  // namespace

[[gnu::noinline]] std::uint32_t capture(InHook hook, ThreadStacks& thread,
                                        std::uint32_t group) noexcept {
  const NativeStack native = without_own_frames(remembered_unwind(hook, registers_here(), thread));
  bool merged_cut = false;
  const bool in_handler = native.truncated || holds_signal_frame(native);
  const PythonStack python = python_stack(hook, thread.python, in_handler);
  const bool all_native = python.count == 0 && !native.truncated;
  const std::uint32_t known = all_native ? known_nodes(thread.nodes, group, native) : 0;
  const std::uint32_t count = merge(hook, native.frames, native.count - known, native.truncated,
                                    python, thread.merged, session::kMaxFrames, &merged_cut);
  const std::uint64_t cut = session::special_frame(session::SpecialFrame::truncated, 0);
  bool truncated = native.truncated || python.truncated || merged_cut;
  std::uint32_t root = group;
  if (truncated) {
    if (const std::uint32_t marked = intern(hook, root, cut); marked != 0) root = marked;
  }
  bool full = false;
  std::uint32_t node = intern_stack(hook, thread.nodes, root, known, thread.merged, count, &full);
  thread.nodes.all_native = all_native;
  if (full) {  // a mark that more was there
    if (const std::uint32_t marked = intern(hook, node, cut); marked != 0) node = marked;
  }
  truncated |= full;
  if (truncated && session::g_session.active()) {
    session::g_session.header().truncated_stacks.fetch_add(1, std::memory_order_relaxed);
  }
  return node;
}

void forget_thread(InHook, ThreadStacks& thread) noexcept {
  for (StackRange& range : thread.ranges) range = {};
  thread.next_range = 0;
  forget_memos(thread);
}

void forget_modules(InHook hook) noexcept {
  if (!modules_still_hold(hook)) forget_rules(hook);
}

void check_a_module(InHook hook) noexcept {
  if (!next_module_still_holds(hook)) forget_rules(hook);
}

void forget_session(InHook hook) noexcept {
  forget_memos();
  forget_module_ids(hook);
  forget_nodes(hook);
  python_forget_session(hook);
}

}  // namespace oomrec::stack
