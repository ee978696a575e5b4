// The node of a stack that the thread has had lately, inlined in the hooks of exact mode: the same
// as capture()'s, without changing a cache of native frames.
#pragma once

#include "common/machine/frames.h"
#include "recorder/python/interpreter.h"
#include "recorder/stack/walk_cache.h"

namespace oomrec::stack {

// Whether the process has a Python interpreter, so that frames must be looked for.
enum class Python : bool { absent, present };
inline bool has_python() noexcept { return g_interpreter.ready.load(std::memory_order_acquire); }

// The chain of the thread's Python frames now; kNoPythonChain: they are truncated.
inline constexpr std::uint64_t kNoPythonChain = ~std::uint64_t{0};
std::uint64_t python_chain(InHook, ThreadStacks&) noexcept;

// The node of the stack from `frame` outwards, the outermost hook's (HookScope::frame()), below
// `root`. 0: call capture().
[[gnu::always_inline]] inline std::uint32_t quick_node(InHook hook, ThreadStacks& thread,
                                                       std::uint32_t root,
                                                       const machine::CalleeFrame& frame,
                                                       Python present) noexcept {
  const CachedWalk* const found =
      find_walk(thread, frame.pc(), frame.sp(), [&] { return frame.bp(); });
  if (found == nullptr) [[unlikely]] {
    thread.walks.searched = true;
    return 0;
  }
  const CachedWalk& walk = *found;
  std::uint64_t python = 0;
  if (present == Python::present) {
    python = python_chain(hook, thread);
    if (python == kNoPythonChain) [[unlikely]]
      return 0;
  }
  const std::uint64_t salt = session::g_era_salt.load(std::memory_order_relaxed);
  if (walk.python == (python ^ salt) && walk.root == root) [[likely]]
    return walk.node;
  const CachedStack wanted{walk.chain ^ salt, python, root, 0};
  const CachedStack& cached = slot_of(thread, wanted);
  return is_same(cached, wanted) ? cached.node : 0;
}

}  // namespace oomrec::stack
