// The part of the self-check that looks at Python's frames and the merged stack: both once more,
// with nothing remembered.
#include <algorithm>

#include "common/session/view.h"
#include "common/system/spin_lock.h"
#include "recorder/python/walk.h"
#include "recorder/session/writer.h"
#include "recorder/stack/capture.h"
#include "recorder/stack/merge.h"
#include "recorder/stack/self_check.h"

namespace oomrec::stack {
namespace {

// What a walk finds lies in the memo, and so does what the next one finds: kept as a hash.
std::uint64_t hash_of(const PythonStack& stack) noexcept {
  std::uint64_t hash = stack.count + (stack.truncated ? 0x10000u : 0u);
  for (std::uint32_t i = 0; i < stack.count; ++i) {
    for (const std::uint64_t value :
         {stack.frames[i].word, stack.frames[i].marker, std::uint64_t{stack.frames[i].shown}}) {
      hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
      hash ^= hash >> 29;
    }
  }
  return hash;
}

// A code object that could not be told: another thread held the table.
bool holds_unknown(const PythonStack& stack) noexcept {
  return std::any_of(stack.frames, stack.frames + stack.count, [](const PythonFrame& frame) {
    return frame.word != 0 && session::code_of(frame.word) == 0;
  });
}

// Whether Python's frames are what a full walk finds, which is left in the memo. False: they are
// not, or nobody can say.
bool check_python(InHook hook, ThreadStacks& thread, const PythonStack& python, bool in_handler,
                  PythonStack& walked) noexcept {
  g_counts->python_frames.fetch_add(python.count, std::memory_order_relaxed);
  g_counts->python_reused.fetch_add(python.reused, std::memory_order_relaxed);
  const std::uint32_t count = python.count;
  const std::uint64_t found = hash_of(python);
  const bool was_unknown = holds_unknown(python);
  forget_python(thread.python);
  walked = python_stack(hook, thread.python, in_handler);
  if (walked.count == 0 && count != 0) return false;  // the interpreter has begun to end meanwhile
  if (was_unknown || holds_unknown(walked)) return false;
  if (hash_of(walked) == found) return true;
  report_difference(hook, "Python's frames are not the full walk's", 0, count, walked.count);
  return false;
}

}  // namespace

void check_merged(InHook hook, ThreadStacks& thread, const NativeStack& native,
                  const PythonStack& python, bool in_handler) noexcept {
  PythonStack walked;
  if (!check_python(hook, thread, python, in_handler, walked)) return;
  MergedMemo& memo = thread.merged;
  const Merged whole = merge(hook, native, walked, {}, memo.fresh, session::kMaxFrames);
  if (memo.count > whole.count) {
    return report_difference(hook, "the merged stack is too long", 0, memo.count, whole.count);
  }
  for (std::uint32_t i = 0; i < memo.count; ++i) {
    const std::uint64_t word = memo.fresh[whole.count - 1 - i].word;
    if (memo.frames[i].word != word) {
      return report_difference(hook, "a frame is not the whole merge's", i, memo.frames[i].word,
                               word);
    }
  }
}

void check_known_stack(InHook hook, const Registers& at, ThreadStacks& thread,
                       const PythonStack& python, const KnownStack& known) noexcept {
  PythonStack walked;
  if (!check_python(hook, thread, python, false, walked)) return;
  static constinit NativeFrame frames[session::kMaxFrames];
  static constinit system::SpinLock lock;
  const system::SpinGuard guard(lock);
  if (!guard) return;
  NativeStack native{frames, 0, 0, false, false};
  native.count = unwind(hook, at, thread, frames, session::kMaxFrames, &native.truncated);
  for (; native.count != 0 && is_own_code(native.frames->pc); --native.count) ++native.frames;
  const Merged whole = merge(hook, native, walked, {}, thread.merged.fresh, session::kMaxFrames);
  g_counts->known_stacks.fetch_add(1, std::memory_order_relaxed);
  std::uint32_t node = known.node;
  for (std::uint32_t i = 0; i < whole.count; ++i) {
    const session::Node& entry = session::g_session.nodes.at(node);
    const std::uint64_t word = thread.merged.fresh[i].word;
    if (entry.frame != word)
      return report_difference(hook, "a known stack's frame is not the whole merge's", i,
                               entry.frame, word);
    node = entry.parent;
  }
  if (node != known.root)
    report_difference(hook, "a known stack is longer", whole.count, node, known.root);
}

}  // namespace oomrec::stack
