// Schedules the bundles of this process: one at a time, as often as BundleRate allows, and those
// that the program requests. Later it adds the process' outcome to the last one.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "common/system/hook_scope.h"
#include "recorder/helper/from_process.h"
#include "recorder/state/failed_request.h"

namespace oomrec::recorder {

// A bundle that was written, or completed.
struct WrittenBundle {
  std::uint64_t number = 0;  // in the process, from 1; 0: there is none
  bool has_texts = false;    // all of the texts are in it
};

struct BundleRequest {
  bool last_chance = false;       // no later one is possible: may use the rate's reserve
  bool reported = false;          // an earlier try has printed its report
  std::uint64_t deadline_ns = 0;  // until when to wait for another thread's bundle
};
inline constexpr BundleRequest kWhenDue{};

bool bundle_is_due(std::uint64_t now_ns) noexcept;

// How long a bundle may take, and when one that begins now has to be done.
unsigned bound_seconds() noexcept;
std::uint64_t writing_deadline_ns() noexcept;

// Waits until no bundle is being written. False: at the deadline one still is.
bool wait_for_writer(std::uint64_t deadline_ns) noexcept;

// Writes the bundle of cause.failure (0: of none), with the label of its stack or of this thread.
// Number 0: it was not due, another one is being written, or it failed.
WrittenBundle write_bundle(InHook, bundle::Cause, const BundleRequest&) noexcept;

// A bundle that the program requests and waits for.
WrittenBundle write_requested(InHook, const bundle::Cause&) noexcept;

// Of the failure in entry `entry`.
bundle::Cause cause_of(std::uint32_t entry, const FailedRequest&) noexcept;

// Number of the bundle that reports the failure; 0: none does.
std::uint32_t bundle_of(const FailedRequest&) noexcept;

// The failure has no bundle, but its report was printed.
bool is_reported(const FailedRequest&) noexcept;

// Whether the last bundle is about this failure: not about one that it followed from.
bool is_in_last_bundle(const FailedRequest&) noexcept;

// The last bundle's failure was repeated, after the process had seemed to recover.
bool is_stale(const FailedRequest&) noexcept;

// On the tick: once the process has run for another ten seconds, adds that to the last bundle. Does
// not wait.
void resolve_recovered(InHook, std::uint64_t now_ns) noexcept;
// The process ends now with `status`: of its last failure, or having recovered from it. Returns
// within the bundle's time bound.
void complete_outcome_at_end(InHook, int status, std::uint64_t now_ns) noexcept;
// The same for an outcome that is known.
void complete_outcome(InHook, OutcomeKind, std::int32_t value) noexcept;

// The last bundle's failure did no harm. Added at once, or on the tick if the bundle is still being
// written.
void recover(InHook) noexcept;

// Adds the crash in the session's header, which follows from this failure, to the last bundle.
// False: that bundle is not the failure's.
bool complete_by_crash(InHook, const FailedRequest&, const BundleRequest&) noexcept;

void reset_bundle_scheduler_after_fork(InHook) noexcept;

// How often a process may write bundles. The first three bundles are written at once. Later ones
// are due only after fifty times the previous one's writing time, so that writing costs less than
// 2 %. A process writes at most twenty; the last is reserved for a last chance, such as the end of
// the process. Times are in ns, of any clock.
//
// Only the thread that writes a bundle calls ended(). Other threads may call due() meanwhile, and
// get the result of before or after.
class BundleRate {
 public:
  static constexpr std::uint32_t kAtOnce = 3;
  static constexpr std::uint32_t kMost = 20;
  static constexpr std::uint64_t kPauseFactor = 50;

  bool due(std::uint64_t now_ns) const noexcept {
    const std::uint32_t written = written_.load(std::memory_order_relaxed);
    if (written + 1 >= kMost) return false;
    return written < kAtOnce || now_ns >= due_ns_.load(std::memory_order_relaxed);
  }
  bool due_as_last_chance() const noexcept {
    return written_.load(std::memory_order_relaxed) < kMost;
  }

  void ended(std::uint64_t began_ns, std::uint64_t now_ns) noexcept {
    due_ns_.store(now_ns + kPauseFactor * (now_ns - began_ns), std::memory_order_relaxed);
    ended_ns_.store(now_ns, std::memory_order_relaxed);
    written_.fetch_add(1, std::memory_order_relaxed);
  }
  std::uint64_t ended_ns() const noexcept { return ended_ns_.load(std::memory_order_relaxed); }

  void reset() noexcept {
    written_.store(0, std::memory_order_relaxed);
    ended_ns_.store(0, std::memory_order_relaxed);
    due_ns_.store(0, std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint32_t> written_{0};
  std::atomic<std::uint64_t> ended_ns_{0};
  std::atomic<std::uint64_t> due_ns_{0};  // from the fourth bundle on
};

// --- For the program's requests. Each waits until the bundle is complete, within its time bound

// oomrec_dump(): writes a bundle now, with the program's texts if there are any.
WrittenBundle dump(InHook, std::string_view reason,
                   const text::ExceptionTexts* texts = nullptr) noexcept;

// Writes the absolute path of the newest bundle, of the bundle of this thread's latest failure, or
// of bundle `number` to `path`. Returns its length in bytes; 0: there is none.
std::size_t last_bundle(InHook, std::span<char> path) noexcept;
std::size_t failure_bundle(InHook, std::span<char> path) noexcept;
std::size_t bundle_path(InHook, std::uint64_t number, std::span<char> path) noexcept;

}  // namespace oomrec::recorder
