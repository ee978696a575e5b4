// Writes a bundle: the directory that says what was asked for, who holds the rest, what happened.
//
// write() is one function for the dying process, the launcher and `recover`. It reads only a
// session view and /proc (system::g_roots), allocates nothing, takes no lock, writes to a temporary
// name in the dump directory, fsyncs, renames; manifest.json is written last. A bundle is whole or
// absent.
#pragma once

#include <cstdint>
#include <string_view>

#include "recorder/bundle/exception_texts.h"
#include "recorder/bundle/frames.h"
#include "recorder/bundle/verdict.h"
#include "recorder/hook_scope.h"
#include "recorder/session/view.h"

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

  std::string_view label;                 // that the program was at work under; empty: none
  const ExceptionTexts* texts = nullptr;  // of the program; null: it has said nothing

  // Where the recordings of its group are (processes.json): the directory of its own. Null:
  // nowhere.
  const char* session_directory = nullptr;

  // What follows has a default that fits most callers.
  std::string_view glibc_version;        // of the process; empty: not known
  ExportedName exported_name = nullptr;  // of the process' modules, in the process itself
  std::uint64_t realtime_ns = 0;         // of the bundle; 0: now
  std::uint64_t number = 0;              // of the bundle in its process; 0: the next
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
  Verdict verdict;
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

// The dying process' way to write(): a helper that shares our memory but is no thread of the
// process (clone with CLONE_VM on a reserved stack, no exit signal, all signals blocked, inherited
// descriptors closed but fd 2), which also prints the report. Waits at most `seconds` for the data;
// the fsync and the rename may still be under way when it returns: see finish().
struct Report {
  bool quiet = false;
  bool told = false;  // by an earlier try, which failed: all but where the bundle is now
};
// `texts_written` (may be null): whether all of Cause::texts could be used.
Result write_from_process(InHook, const Cause&, const Destination&, const Report&, unsigned seconds,
                          bool* texts_written = nullptr) noexcept;

// Waits at most `seconds` until no helper is at work; with 0 it only asks. For the process' own
// end, so that its bundle is there when it is gone, and for a tick, so that an ended helper is
// reaped.
bool finish(InHook, unsigned seconds) noexcept;

// Reserves and touches what write_from_process needs, and remembers which file stderr is, and what
// a command gets of `environment`. Called from the recorder's start().
bool prepare(const char* const* environment) noexcept;

// Has the helper run the user's command (command.h) for the last bundle of this process, and waits
// for its end, at most `seconds`. False: it could not be started.
bool run_from_process(InHook, const char* command, unsigned seconds) noexcept;

// What is known only after a bundle was written.
inline constexpr std::uint32_t kRepeatsUnknown = ~std::uint32_t{0};
struct Completion {
  OutcomeKind outcome = OutcomeKind::unknown;
  std::int32_t value = 0;                   // exit status or signal number
  std::uint32_t repeats = kRepeatsUnknown;  // of the request; unknown: as they are in the bundle

  // Null: as in the bundle.
  const Verdict* verdict = nullptr;
  const session::Crash* crash = nullptr;
  const session::View* crashed = nullptr;  // the session that has the crash, for its names
  ExportedName exported_name = nullptr;    // in the process itself
  const session::Death* death = nullptr;
};

// Further refusals of the same request, by now; kRepeatsUnknown where there is no such entry.
std::uint32_t repeats_of(const session::View&, std::uint64_t failure) noexcept;

// Completes the bundle at `path`: crash and death in its recording, then the verdict in its
// manifest, then all of it in metadata.json. A file is old or new, never torn, and metadata.json,
// which tells that the outcome is known, is the last.
bool complete(InHook, const char* path, const Completion&, Workspace&) noexcept;

// The same for the last bundle that write_from_process() wrote in this process, with the repeats of
// its request that the session has counted by now, by a helper that is waited for at most
// `seconds`; with 0 it is only started, and finish() reaps it. False when there is no such bundle,
// or a helper is still at work.
bool complete_last(InHook, OutcomeKind, std::int32_t value, unsigned seconds) noexcept;

// The same when the process is about to die of the crash in the session's header, which follows
// from the refusal that the bundle tells: the bundle gets the crash, and its verdict. Waits for a
// helper at work, too. Prints the verdict's sentence unless quiet.
bool complete_last_by_crash(InHook, bool quiet, unsigned seconds) noexcept;

// The program says of an exception what it is, once the bundle of its refusal is there:
// metadata.json gets its texts, and `objects` a file of their own. Nothing else changes. False: not
// all of it could be written.
bool complete_texts(InHook, const char* path, const ExceptionTexts&, Workspace&) noexcept;

// The same for the bundle that write_from_process() wrote as number `number` of this process, by a
// helper that is waited for at most `seconds`. False also when some text is no JSON, see TextSpace.
bool complete_texts_of(InHook, std::uint64_t number, const ExceptionTexts&,
                       unsigned seconds) noexcept;

// The absolute path of that bundle, once it is in its place, which is waited for at most `seconds`.
// Empty: there is none. `buffer` is as long as a path may be.
std::string_view path_of(InHook, std::uint64_t number, std::span<char> buffer,
                         unsigned seconds) noexcept;

// "running", "exited 1", "signal 11": the word for metadata.json, in `buffer`.
std::string_view outcome_text(OutcomeKind, std::int32_t value, std::span<char> buffer) noexcept;

}  // namespace oomrec::bundle
