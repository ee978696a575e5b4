// The self-check of Python's frames and of the merged stack: finds both again without the caches.
#include <algorithm>

#include "common/session/view.h"
#include "common/system/mutex.h"
#include "recorder/python/walk.h"
#include "recorder/session/writer.h"
#include "recorder/stack/capture.h"
#include "recorder/stack/merge.h"
#include "recorder/stack/self_check.h"

namespace oomrec::stack {
namespace {

// A walk's result lies in the cache, which the next walk overwrites: so compare by a hash.
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

// A code object without an id: another thread had locked the table.
bool has_unknown_code(const PythonStack& stack) noexcept {
  return std::any_of(stack.frames, stack.frames + stack.count, [](const PythonFrame& frame) {
    return frame.word != 0 && session::code_of(frame.word) == 0;
  });
}

// Whether Python's frames equal those of a full walk, which is left in the cache. False: they do
// not, or that cannot be decided.
bool check_python(InHook hook, ThreadStacks& thread, const PythonStack& python, bool in_handler,
                  PythonStack& walked) noexcept {
  g_counts->python_frames.fetch_add(python.count, std::memory_order_relaxed);
  g_counts->python_reused.fetch_add(python.reused, std::memory_order_relaxed);
  const std::uint32_t count = python.count;
  const std::uint64_t found = hash_of(python);
  const bool was_unknown = has_unknown_code(python);
  clear_python_cache(thread.python);
  walked = python_stack(hook, thread.python, in_handler);
  if (walked.count == 0 && count != 0) return false;  // the interpreter is ending meanwhile
  if (was_unknown || has_unknown_code(walked)) return false;
  if (hash_of(walked) == found) return true;
  report_difference(hook, "Python's frames are not the full walk's", 0, count, walked.count);
  return false;
}

}  // namespace

void check_merged(InHook hook, ThreadStacks& thread, const NativeStack& native,
                  const PythonStack& python, bool in_handler) noexcept {
  PythonStack walked;
  if (!check_python(hook, thread, python, in_handler, walked)) return;
  MergedCache& cache = thread.merged;
  const Merged whole = merge(hook, native, walked, {}, cache.fresh, session::kMaxFrames);
  if (cache.count > whole.count) {
    return report_difference(hook, "the merged stack is too long", 0, cache.count, whole.count);
  }
  for (std::uint32_t i = 0; i < cache.count; ++i) {
    const std::uint64_t word = cache.fresh[whole.count - 1 - i].word;
    if (cache.frames[i].word != word) {
      return report_difference(hook, "a frame is not the whole merge's", i, cache.frames[i].word,
                               word);
    }
  }
}

void check_cached_stack(InHook hook, const Registers& at, ThreadStacks& thread,
                        const PythonStack& python, const CachedStack& cached) noexcept {
  PythonStack walked;
  if (!check_python(hook, thread, python, false, walked)) return;
  static constinit NativeFrame frames[session::kMaxFrames];
  static constinit system::Mutex lock;
  const system::MutexGuard guard(lock);
  if (!guard) return;
  NativeStack native{frames, 0, 0, false, false};
  native.count = unwind(hook, at, thread, frames, session::kMaxFrames, &native.truncated);
  for (; native.count != 0 && is_own_code(native.frames->pc); --native.count) ++native.frames;
  const Merged whole = merge(hook, native, walked, {}, thread.merged.fresh, session::kMaxFrames);
  g_counts->cached_stacks.fetch_add(1, std::memory_order_relaxed);
  std::uint32_t node = cached.node;
  for (std::uint32_t i = 0; i < whole.count; ++i) {
    const session::Node entry = session::g_session.node(node);
    const std::uint64_t word = thread.merged.fresh[i].word;
    if (entry.frame != word)
      return report_difference(hook, "a cached stack's frame is not the whole merge's", i,
                               entry.frame, word);
    node = entry.parent;
  }
  if (node != cached.root)
    report_difference(hook, "a cached stack is longer", whole.count, node, cached.root);
}

}  // namespace oomrec::stack
