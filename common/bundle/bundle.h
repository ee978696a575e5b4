// Writes a bundle: the directory that records the failed request, what used the memory, and how the
// process ended.
//
// The dying process, the launcher and `recover` all call write(). It reads only a session view and
// /proc (system::g_roots), allocates nothing and takes no lock. It writes to a temporary name in
// the dump directory, fsyncs and renames; manifest.json is written last. So a bundle is complete or
// absent.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/facts/request.h"
#include "common/session/view.h"
#include "common/system/hook_scope.h"
#include "common/text/exception_texts.h"
#include "common/text/frames.h"
#include "common/verdict/verdict.h"

namespace oomrec::bundle {

struct Destination {
  const char* directory;        // absolute, % expanded (expand.h); created if missing
  std::uint64_t max_dumps = 5;  // 0: no bound
  std::uint64_t max_total_bytes = std::uint64_t{256} << 20;  // 0: no bound
};

struct Cause {
  Trigger trigger = Trigger::none;
  std::uint32_t failure = 0;  // entry in `failures`; 0: none
  std::string_view reason;    // the user's words for Trigger::request
  OutcomeKind outcome = OutcomeKind::running;
  std::int32_t outcome_value = 0;  // exit status or signal number
  bool alive = true;               // /proc/PID of the process may be read for environment.json
  const session::EndEvidence* end = nullptr;   // how it ended; null: not examined
  const session::Health* health = nullptr;     // read from outside; null: its own last reading
  const session::ChildDeath* child = nullptr;  // the worker whose death ended it; null: none

  std::string_view label;                       // the label in force; empty: none
  const text::ExceptionTexts* texts = nullptr;  // from the program; null: none

  // The directory with the recordings of its process tree (processes.json), its own among them.
  // Null: none.
  const char* session_directory = nullptr;

  // The defaults below fit most callers.
  std::string_view glibc_version;              // of the process; empty: unknown
  text::ExportedName exported_name = nullptr;  // in the process itself
  std::uint64_t realtime_ns = 0;               // of the bundle; 0: now
  std::uint64_t number = 0;                    // of the bundle in its process; 0: the next
};

enum class Result : std::uint8_t { written, no_directory, no_space, timed_out, failed };

// Fixed memory for write(). The process keeps one, with its pages touched in advance.
struct Workspace {
  char path[4096];
  char temporary[4096];
  char name[64];
  char line[2048];
  char text[64 * 1024];
  char json[16 * 1024];
  std::uint64_t sort[16 * 1024];
  session::Lane lane;
  verdict::Verdict verdict;
};

// Called when the data is in the files, before the fsync and the rename; `path` is the bundle's.
struct Progress {
  void (*data_written)(InHook, void* argument) noexcept = nullptr;
  void* argument = nullptr;
};

// Writes one bundle of `view` and leaves its final path in workspace.path. `error` is an errno
// unless the result is `written`.
Result write(InHook, const session::View& view, const Cause&, const Destination&, Workspace&,
             int& error, const Progress& = {}) noexcept;

// What becomes known only after a bundle is written.
inline constexpr std::uint32_t kRepeatsUnknown = ~std::uint32_t{0};
struct Completion {
  OutcomeKind outcome = OutcomeKind::unknown;
  std::int32_t value = 0;                   // exit status or signal number
  std::uint32_t repeats = kRepeatsUnknown;  // of the request; unknown: leave the bundle's count
  facts::Aftershocks aftershocks = {};      // of the request; count 0: leave the bundle's
  session::LimitReserve reserve = {};       // without a limit: leave the bundle's

  // Null: keep what the bundle has.
  const verdict::Verdict* verdict = nullptr;
  const session::Crash* crash = nullptr;
  const session::View* crash_session = nullptr;  // whose crash it is, to name its frames
  text::ExportedName exported_name = nullptr;    // in the process itself
  const session::EndEvidence* end = nullptr;
};

// Further failures of the same request so far; kRepeatsUnknown if there is no such entry.
std::uint32_t repeats_of(const session::View&, std::uint64_t failure) noexcept;

// The after-shocks of this failure so far.
facts::Aftershocks aftershocks_of(const session::View&, std::uint64_t failure) noexcept;

// The outcome, with what the session has counted so far since this failure.
Completion completion_of(const session::View&, std::uint64_t failure, OutcomeKind,
                         std::int32_t value) noexcept;

// Completes the bundle at `path`: first crash and death in its recording, then the verdict in its
// manifest, then metadata.json. Each file is old or new, never torn. metadata.json comes last
// because it says that the outcome is known.
bool complete(InHook, const char* path, const Completion&, Workspace&) noexcept;

// Adds an exception's texts to the bundle of its failed allocation: to metadata.json, and `objects`
// to a file of its own. Changes nothing else. False: not everything could be written.
bool complete_exception(InHook, const char* path, const text::ExceptionTexts&, Workspace&) noexcept;

// "running", "exited 1", "signal 11": the word for metadata.json, in `buffer`.
std::string_view outcome_text(OutcomeKind, std::int32_t value, std::span<char> buffer) noexcept;

}  // namespace oomrec::bundle
