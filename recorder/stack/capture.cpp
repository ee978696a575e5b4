// From a call into this library to a node of the session's trie.
#include "recorder/stack/capture.h"

#include <algorithm>

#include "common/session/view.h"
#include "recorder/python/attach.h"
#include "recorder/python/chain.h"
#include "recorder/python/walk.h"
#include "recorder/session/writer.h"
#include "recorder/stack/intern.h"
#include "recorder/stack/merge.h"
#include "recorder/stack/odd_frames.h"
#include "recorder/stack/rules.h"
#include "recorder/stack/self_check.h"

namespace oomrec::stack {
namespace {

constinit AddressRange g_own_code;

[[gnu::always_inline]] inline Registers registers_here() noexcept {
  Registers now;
  asm volatile("leaq 0(%%rip), %0\n\tmovq %%rsp, %1\n\tmovq %%rbp, %2"
               : "=r"(now.pc), "=r"(now.sp), "=r"(now.bp));
  return now;
}

// Where the program called the hook that is at work: its frame holds the caller's bp and, above it,
// the return address. Without a hook (unit tests): here.
[[gnu::always_inline]] inline Registers start_of_walk() noexcept {
  const Registers here = registers_here();
  const auto frame = reinterpret_cast<std::uint64_t>(HookScope::frame());
  if (frame == 0) return here;
  return {load_cell(frame + 8), frame + 16, load_cell(frame), false};
}

// The words of the innermost `count` frames, as far as their modules are known to this thread.
void name_frames(InHook hook, ThreadStacks& thread, const NativeStack& stack,
                 std::uint32_t count) noexcept {
  for (NativeFrame* frame = stack.frames; frame != stack.frames + count; ++frame) {
    if (frame->word != 0) continue;
    const std::uint64_t address = frame->exact ? frame->pc : frame->pc - 1;
    CodeRange& code = thread.code[(address >> 20) % kCodeRanges];
    if (address - code.start >= code.bytes) [[unlikely]]
      code = code_range_at(hook, address);
    frame->word =
        session::native_frame(code.module, frame->pc - code.base, frame->exact, frame->guessed);
  }
}

// A module is gone: nothing that was found by address is known any more.
void forget_rules(InHook hook) noexcept {
  clear_rules(hook);
  forget_memos();  // after it: no walk that begins from here on meets a rule of before
  python_forget_modules(hook);
  if (session::g_session.active()) {
    session::g_session.header().module_generation.fetch_add(1, std::memory_order_relaxed);
  }
}

// The calling thread's native frames from `at` outwards, without this library's own.
NativeStack program_stack_from(InHook hook, const Registers& at, ThreadStacks& thread) noexcept {
  NativeStack stack = remembered_unwind(hook, at, thread);
  while (stack.count != 0 && g_own_code.holds(stack.frames->pc)) [[unlikely]] {
      ++stack.frames;
      --stack.count;
    }
  if (stack.count == 0 || stack.count > session::kMaxFrames) [[unlikely]] {
    const std::uint32_t kept = std::min(stack.count, session::kMaxFrames);
    stack.reused -= std::min(stack.reused, stack.count - kept);
    stack.count = kept;
    stack.truncated = true;
  }
  stack.reused = std::min(stack.reused, stack.count);
  return stack;
}

}  // namespace

void set_own_code(const AddressRange& range) noexcept { g_own_code = range; }
bool is_own_code(std::uint64_t pc) noexcept { return g_own_code.holds(pc); }

[[gnu::noinline]] NativeStack program_stack(InHook hook, ThreadStacks& thread) noexcept {
  return program_stack_from(hook, start_of_walk(), thread);
}

void start() noexcept {
  const InHook hook = OutsideHooks::in_hook();
  start_modules(hook);
  start_intern(hook);
  const std::uint32_t slot = module_slot_at(hook, registers_here().pc);
  if (slot != 0) g_own_code = known_module(slot).mapped;
  start_odd_frames(hook);
  if constexpr (kSelfCheck) start_self_check(hook);
  python_start();
}

namespace {

// The node of a stack below `root`: its outermost frames `known` are the thread's last stack's,
// then come `count` fresh ones. *full: the trie has no room, and this is the longest prefix.
std::uint32_t intern_stack(InHook hook, NodeMemo& nodes, MergedMemo& memo, std::uint32_t known,
                           std::uint32_t count, bool* full) noexcept {
  std::uint32_t comparable = memo.count;
  std::uint32_t node = known == 0 ? memo.root : memo.frames[known - 1].node;
  memo.count = known;
  for (; count != 0; ++memo.count) {
    const MergedFrame& fresh = memo.fresh[--count];
    MergedFrame& frame = memo.frames[memo.count];
    if (memo.count < comparable && frame.word == fresh.word) {
      node = frame.node;
    } else {
      comparable = 0;
      const std::uint32_t next = intern(hook, nodes, node, fresh.word);
      if (next == 0) {
        *full = true;
        return node;
      }
      node = next;
    }
    frame = fresh;
    frame.node = node;
  }
  return node;
}

void begin_root(MergedMemo& memo, std::uint32_t root) noexcept {
  if (memo.root == root) return;
  memo.root = root;
  memo.count = 0;
}

// Merges both chains and interns the result below `group`. *whole: all of it has a node.
std::uint32_t merge_and_intern(InHook hook, ThreadStacks& thread, NativeStack native,
                               PythonStack python, bool in_handler, std::uint32_t group,
                               bool* whole) noexcept {
  MergedMemo& memo = thread.merged;
  name_frames(hook, thread, native, native.count - std::min(native.count, memo.native));
  native.reused = memo.native;
  python.reused = memo.python;
  const bool may_join =
      !native.truncated && !python.truncated && (!in_handler || python.count == 0);
  const bool joins = may_join && memo.joinable && memo.root == group;
  Join join = joins ? join_of(memo, native, python) : Join{};
  Merged merged = merge(hook, native, python, join, memo.fresh, session::kMaxFrames - join.frames);
  if (!merged.regular && join.frames != 0) {
    join = {};
    merged = merge(hook, native, python, join, memo.fresh, session::kMaxFrames);
  }
  memo.joinable = may_join && merged.regular;
  memo.native = native.count;
  memo.python = python.count;
  const std::uint64_t cut = session::special_frame(session::SpecialFrame::truncated, 0);
  bool truncated = native.truncated || python.truncated || merged.cut;
  std::uint32_t root = group;
  if (truncated) {
    if (const std::uint32_t marked = intern(hook, root, cut); marked != 0) root = marked;
  }
  begin_root(memo, root);
  bool full = false;
  std::uint32_t node = intern_stack(hook, thread.nodes, memo, join.frames, merged.count, &full);
  if (full) {  // a mark that more was there
    if (const std::uint32_t marked = intern(hook, node, cut); marked != 0) node = marked;
  }
  *whole = !truncated && !full;
  if (!*whole && session::g_session.active()) {
    session::g_session.header().truncated_stacks.fetch_add(1, std::memory_order_relaxed);
  }
  return node;
}

// Where a stack with these chains would be, if it is known.
KnownStack& place_of(ThreadStacks& thread, const KnownStack& stack) noexcept {
  return thread.known[chain_of(stack.root, stack.native, stack.python) >> (64 - kKnownStackBits)];
}

bool is_same(const KnownStack& a, const KnownStack& b) noexcept {
  return a.native == b.native && a.python == b.python && a.root == b.root && a.node != 0;
}

}  // namespace

[[gnu::noinline]] std::uint32_t capture(InHook hook, ThreadStacks& thread,
                                        std::uint32_t group) noexcept {
  const Registers at = start_of_walk();
  MergedMemo& memo = thread.merged;
  KnownStack stack{known_chain(hook, at, thread), 0, group, 0};
  NativeStack native{};  // not walked yet
  const auto walk = [&] {
    native = program_stack_from(hook, at, thread);
    memo.native = std::min(memo.native, native.reused);
    if (stack.native == 0 && native.count != 0) stack.native = native.frames->chain;
  };
  if (stack.native == 0) walk();
  const bool in_handler = native.truncated || native.interrupted;
  const PythonStack python = python_stack(hook, thread.python, in_handler);
  memo.python = std::min(memo.python, python.reused);
  if (python.count != 0) stack.python = python.frames[python.count - 1].chain;

  KnownStack& known = place_of(thread, stack);
  const bool may_be_known = !in_handler && !python.truncated;
  if (may_be_known && is_same(known, stack)) {
    if constexpr (kSelfCheck) check_known_stack(hook, at, thread, python, known);
    return known.node;
  }
  if (native.count == 0) walk();
  bool whole = false;
  stack.node = merge_and_intern(hook, thread, native, python, in_handler, group, &whole);
  if constexpr (kSelfCheck) check_merged(hook, thread, native, python, in_handler);
  if (may_be_known && whole) known = stack;
  return stack.node;
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
