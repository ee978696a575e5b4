// Writes a bundle: the directory that says what was asked for, who holds the rest, what happened.
//
// write() is one function for the dying process, the launcher and `recover`. It reads only a
// session view and /proc (system::g_roots), allocates nothing, takes no lock, writes to a temporary
// name in the dump directory, fsyncs, renames; manifest.json is written last. A bundle is whole or
// absent.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/session/view.h"
#include "common/system/hook_scope.h"
#include "common/text/exception_texts.h"
#include "common/text/frames.h"
#include "common/verdict/verdict.h"

namespace oomrec::bundle {

struct Destination {
  const char* directory;  // absolute, % already expanded (expand.h); created when it is not there
  std::uint64_t max_dumps = 5;                               // 0: no bound
  std::uint64_t max_total_bytes = std::uint64_t{256} << 20;  // 0: no bound
};

struct Cause {
  Trigger trigger = Trigger::none;
  std::uint32_t failure = 0;  // entry in `failures`; 0: none
  std::string_view reason;    // the user's words for Trigger::request
  OutcomeKind outcome = OutcomeKind::running;
  std::int32_t outcome_value = 0;  // exit status or signal number
  bool alive = true;               // /proc/PID of the process may be read for environment.json
  const session::Death* death = nullptr;    // what was found out about its end; null: nobody looked
  const session::Health* health = nullptr;  // as others see it now; null: as it saw itself last
  const session::ChildDeath* child = nullptr;  // the worker that it ended for; null: none

  std::string_view label;                       // that the program was at work under; empty: none
  const text::ExceptionTexts* texts = nullptr;  // of the program; null: it has said nothing

  // Where the recordings of its group are (processes.json): the directory of its own. Null:
  // nowhere.
  const char* session_directory = nullptr;

  // What follows has a default that fits most callers.
  std::string_view glibc_version;              // of the process; empty: not known
  text::ExportedName exported_name = nullptr;  // of the process' modules, in the process itself
  std::uint64_t realtime_ns = 0;               // of the bundle; 0: now
  std::uint64_t number = 0;                    // of the bundle in its process; 0: the next
};

enum class Result : std::uint8_t { written, no_directory, no_room, timed_out, failed };

// Fixed memory that write() works in; the process keeps one, pre-touched.
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

// Told when the data is in the files, before the fsync and the rename; `path` is the bundle's.
struct Progress {
  void (*data_written)(InHook, void* argument) noexcept = nullptr;
  void* argument = nullptr;
};

// Writes one bundle of `view`. Its final path goes to workspace.path. `error` is an errno when the
// result is not `written`.
Result write(InHook, const session::View& view, const Cause&, const Destination&, Workspace&,
             int& error, const Progress& = {}) noexcept;

// What is known only after a bundle was written.
inline constexpr std::uint32_t kRepeatsUnknown = ~std::uint32_t{0};
struct Completion {
  OutcomeKind outcome = OutcomeKind::unknown;
  std::int32_t value = 0;                   // exit status or signal number
  std::uint32_t repeats = kRepeatsUnknown;  // of the request; unknown: as they are in the bundle

  // Null: as in the bundle.
  const verdict::Verdict* verdict = nullptr;
  const session::Crash* crash = nullptr;
  const session::View* crashed = nullptr;      // the session that has the crash, for its names
  text::ExportedName exported_name = nullptr;  // in the process itself
  const session::Death* death = nullptr;
};

// Further refusals of the same request, by now; kRepeatsUnknown where there is no such entry.
std::uint32_t repeats_of(const session::View&, std::uint64_t failure) noexcept;

// Completes the bundle at `path`: crash and death in its recording, then the verdict in its
// manifest, then all of it in metadata.json. A file is old or new, never torn, and metadata.json,
// which tells that the outcome is known, is the last.
bool complete(InHook, const char* path, const Completion&, Workspace&) noexcept;

// The program says of an exception what it is, once the bundle of its refusal is there:
// metadata.json gets its texts, and `objects` a file of their own. Nothing else changes. False: not
// all of it could be written.
bool complete_texts(InHook, const char* path, const text::ExceptionTexts&, Workspace&) noexcept;

// "running", "exited 1", "signal 11": the word for metadata.json, in `buffer`.
std::string_view outcome_text(OutcomeKind, std::int32_t value, std::span<char> buffer) noexcept;

}  // namespace oomrec::bundle
