#include "recorder/events/in_flight.h"

#include "recorder/stack/stack.h"
#include "recorder/state/node_scope.h"
#include "recorder/state/state.h"
#include "recorder/state/thread_state.h"

namespace oomrec::recorder {

void InFlight::begin(InHook hook, const Request& request) noexcept {
  ThreadState* const thread = phase() == Phase::active ? current_thread(hook) : nullptr;
  if (thread == nullptr) return;
  const NodeScope nodes{hook, thread};
  session::InFlight& entry = thread->lane->in_flight;
  entry.bytes.store(0, std::memory_order_release);  // of one that a longjmp has left
  entry.node.store(
      stack::capture(hook, thread->stacks, thread->root(hook), stack::Waiting::included),
      std::memory_order_relaxed);
  entry.api = static_cast<std::uint16_t>(request.api);
  entry.space = static_cast<std::uint8_t>(request.space);
  entry.replaced_bytes = 0;
  entry.replaced_holder = 0;
  entry.bytes.store(request.bytes, std::memory_order_release);
  lane_ = thread->lane;
}

}  // namespace oomrec::recorder
