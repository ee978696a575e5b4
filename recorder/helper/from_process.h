// Writes, completes and finds the bundles of the dying process, by means of the helper (helper.h).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "common/bundle/bundle.h"

namespace oomrec::helper {

// What the helper prints on stderr.
struct ReportOptions {
  bool quiet = false;
  // An earlier attempt has reported the failure and could not write: print only where the bundle
  // is.
  bool failure_reported = false;
};

// Calls bundle::write() in the helper (inherited descriptors closed but fd 2), and prints the
// report. Waits at most `seconds` for the data; the fsync and the rename may still be under way on
// return: see finish(). `texts_written` (may be null): whether all of Cause::texts were usable.
bundle::Result write_from_process(InHook, const bundle::Cause&, const bundle::Destination&,
                                  const ReportOptions&, unsigned seconds,
                                  bool* texts_written = nullptr) noexcept;

// Waits at most `seconds` until the helper is idle; 0 polls. Called at the process' end, so that
// the bundle is complete by then, and by a tick, to reap a helper that has ended.
bool finish(InHook, unsigned seconds) noexcept;

// Forgets the bundles of this process: another recording begins. False: still at work after
// `seconds`.
bool forget_bundles(InHook, unsigned seconds) noexcept;

// Reserves and touches the memory that write_from_process() needs, and records which file stderr is
// and the command's part of `environment`. Called from the recorder's start().
bool prepare(const char* const* environment) noexcept;

// Has the helper run the user's command (command.h) for the last bundle of this process; waits at
// most `seconds` for its end. False: it could not be started.
bool run_from_process(InHook, const char* command, unsigned seconds) noexcept;

// Calls bundle::complete() in the helper for this process' last bundle, with the repeats of its
// request that the session has counted so far. Waits at most `seconds`; with 0 it only starts the
// helper, and finish() reaps it. False: no such bundle, or the helper is still busy.
bool complete_last(InHook, OutcomeKind, std::int32_t value, unsigned seconds) noexcept;

// The same when the process is about to die of the crash in the session's header, caused by the
// failure that the bundle records: adds the crash and its verdict to the bundle, and prints the
// verdict's sentence unless quiet. Waits for a busy helper, too.
bool complete_last_by_crash(InHook, const ReportOptions&, unsigned seconds) noexcept;

// Calls bundle::complete_exception() in the helper for bundle `number` of this process; waits at
// most `seconds`. False also when a text that should be JSON is not, see TextSpace.
bool complete_texts_of(InHook, std::uint64_t number, const text::ExceptionTexts&,
                       unsigned seconds) noexcept;

// The absolute path of bundle `number`; waits at most `seconds` for a bundle being written. Empty:
// there is none. `buffer` must be long enough for the longest path.
std::string_view path_of(InHook, std::uint64_t number, std::span<char> buffer,
                         unsigned seconds) noexcept;

}  // namespace oomrec::helper
