// An event that uses nodes: from before it captures a stack until the session refers to the node.
#pragma once

#include "recorder/stack/intern.h"
#include "recorder/stack/stack.h"
#include "recorder/state/callbacks.h"
#include "recorder/state/thread_state.h"

namespace oomrec::recorder {

// At its end the thread does a slice of forgetting, if there is something to do.
class NodeScope {
 public:
  explicit NodeScope(InHook hook) noexcept : hook_(hook) {}
  NodeScope(InHook hook, ThreadState* thread) noexcept : hook_(hook) {
    if (thread != nullptr) begin(*thread);
  }
  ~NodeScope() {
    if (!uses_.end()) return;
    if (stack::g_nodes_in_use.load(std::memory_order_relaxed) >=
        session::g_forget_at.load(std::memory_order_relaxed)) [[unlikely]]
      g_callbacks.forget(hook_);
  }
  NodeScope(const NodeScope&) = delete;
  NodeScope& operator=(const NodeScope&) = delete;

  // For an event that learns late which thread's it is.
  void begin(ThreadState& thread) noexcept { uses_.begin(thread.stacks.era); }

 private:
  const InHook hook_;
  stack::UsesNodes uses_;
};

}  // namespace oomrec::recorder
