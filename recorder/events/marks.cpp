#include "recorder/events/marks.h"

#include "common/system/files.h"
#include "recorder/session/writer.h"
#include "recorder/state/clock.h"
#include "recorder/state/state.h"
#include "recorder/state/thread_state.h"

namespace oomrec::recorder {

using session::g_session;

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

}  // namespace oomrec::recorder
