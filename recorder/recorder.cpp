// What is told to the recorder beside allocations: children, limits, labels, marks, modules.
//
// An event `mark` with api `fork` is a child that was waited for (address: its pid, bytes: its wait
// status), one with api `oomrec_mark` the program's own (address: its entry in `marks`).
#include "recorder/recorder.h"

#include "common/system/files.h"
#include "recorder/ended_children.h"
#include "recorder/news.h"
#include "recorder/session/writer.h"
#include "recorder/stack/stack.h"
#include "recorder/state.h"
#include "recorder/threads.h"
#include "recorder/tick.h"

namespace oomrec::recorder {

using session::g_session;

void on_child_status(InHook hook, int pid, int wait_status) noexcept {
  if (phase() != Phase::active) return;
  remember_ended(g_session.header(), pid, wait_status, system::monotonic_ns());
  ThreadState* const thread = current_thread(hook);
  if (thread == nullptr) return;
  maybe_read_clock(hook, *thread);
  append_event(*thread, EventKind::mark, Api::fork, static_cast<std::uint64_t>(pid),
               static_cast<std::uint32_t>(wait_status), 0);
}

void mark(InHook hook, std::string_view text) noexcept {
  constexpr std::size_t kMostBytes = 256;
  if (phase() != Phase::active) return;
  ThreadState* const thread = current_thread(hook);
  const std::uint64_t now = system::monotonic_ns();
  const bool full = g_session.marks.size() > session::kMarks;
  const session::StringId id = full ? 0 : g_session.add_string(hook, text.substr(0, kMostBytes));
  std::uint32_t entry = 0;
  if (full || !g_session.marks.append(hook, entry, [&](session::Mark& mark) noexcept {
        mark = {now, id, thread != nullptr ? thread->thread : 0};
      })) {
    drop_mark();
    return;
  }
  if (thread == nullptr) return;
  read_clock(hook, *thread);
  append_event(*thread, EventKind::mark, Api::oomrec_mark, entry, 0, 0);
}

void drop_mark() noexcept {
  if (phase() == Phase::active)
    g_session.header().dropped_marks.fetch_add(1, std::memory_order_relaxed);
}

void set_limit(InHook hook, std::uint64_t bytes) noexcept {
  g_state.limit.set(bytes);
  g_state.may_refuse.store(bytes != 0 || injects(), std::memory_order_relaxed);
  if (phase() == Phase::active)
    g_session.header().soft_limit_bytes.store(bytes, std::memory_order_relaxed);
  limit_changed(hook);
}

void on_module_unload(InHook hook) noexcept {
  if (phase() != Phase::active) return;
  g_session.header().module_generation.fetch_add(1, std::memory_order_relaxed);
  stack::forget_modules(hook);
}

void note_heap(InHook hook, std::string_view note) noexcept {
  if (phase() == Phase::active) g_session.header().heap_note = g_session.add_string(hook, note);
}

}  // namespace oomrec::recorder
