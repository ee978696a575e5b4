#include "recorder/events/marks.h"

#include "common/system/files.h"
#include "common/system/mutex.h"
#include "recorder/session/reuse.h"
#include "recorder/session/writer.h"
#include "recorder/state/clock.h"
#include "recorder/state/state.h"
#include "recorder/state/thread_state.h"
#include "recorder/state/time_line.h"

namespace oomrec::recorder {

using session::g_session;
using session::Mark;
using session::StringId;

namespace {

constexpr std::uint32_t kLatest = session::kMarks / 2;
constexpr std::size_t kMostBytes = 256;

// The first half of the table has older marks, an even number of marks apart; the second half is a
// ring of the latest.
struct Marks {
  system::Mutex lock;
  std::uint32_t count = 0;  // so far
  TimeLine<session::kMarks - kLatest> older;
};
constinit Marks g_marks;

void drop_one() noexcept {
  g_session.header().dropped_marks.fetch_add(1, std::memory_order_relaxed);
}

// The oldest of the latest marks moves to the older ones, if it is far enough from these. Returns
// the text that no mark has any more.
StringId make_room(const Mark& oldest) noexcept {
  const std::uint32_t number = g_marks.count - kLatest;
  const std::uint32_t slot =
      g_marks.older.wants(number) ? g_marks.older.slot(number) : g_marks.older.kNone;
  drop_one();
  if (slot == g_marks.older.kNone) return oldest.text;
  Mark& older = g_session.marks.at(1 + slot);
  const StringId unused = older.text;
  session::rewrite(std::atomic_ref(older.time_ns), oldest.time_ns, [&]() noexcept {
    older.text = oldest.text;
    older.thread = oldest.thread;
  });
  return unused;
}

// Returns its entry; 0: there is no memory for it. Under the lock.
std::uint32_t add(InHook hook, std::string_view text, std::uint32_t thread) noexcept {
  const std::uint64_t now = system::monotonic_ns();
  std::uint32_t entry = g_marks.count + 1;
  if (entry <= session::kMarks) {
    const StringId id = g_session.take_text(hook, text);
    if (!g_session.marks.append(hook, entry, [&](Mark& mark) noexcept {
          mark = {now, id, thread};
        }))
      return 0;
    if (entry <= session::kMarks - kLatest) {
      g_marks.older.slot(g_marks.count);
      g_marks.older.added();
    }
  } else {
    entry = 1 + (session::kMarks - kLatest) + g_marks.count % kLatest;
    Mark& mark = g_session.marks.at(entry);
    const StringId unused = make_room(mark);
    session::rewrite(std::atomic_ref(mark.time_ns), now, [&]() noexcept {
      g_session.give_text(hook, unused);
      mark.text = g_session.take_text(hook, text);
      mark.thread = thread;
    });
  }
  ++g_marks.count;
  return entry;
}

}  // namespace

void mark(InHook hook, std::string_view text) noexcept {
  if (phase() != Phase::active) return;
  ThreadState* const thread = current_thread(hook);
  std::uint32_t entry = 0;
  {
    const system::MutexGuard guard(g_marks.lock);
    if (guard)
      entry = add(hook, text.substr(0, kMostBytes), thread != nullptr ? thread->thread : 0);
  }
  if (entry == 0) return drop_one();
  if (thread == nullptr) return;
  read_clock(hook, *thread);
  append_event(*thread, EventKind::mark, Api::oomrec_mark, entry, 0, 0);
}

void drop_mark() noexcept {
  if (phase() == Phase::active) drop_one();
}

void reset_marks_after_fork(InHook) noexcept {
  g_marks.lock.unlock();  // its owner may not exist in the child
  g_marks.count = 0;
  g_marks.older.reset();
}

}  // namespace oomrec::recorder
