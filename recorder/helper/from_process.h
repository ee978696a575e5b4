// The dying process' own bundles: written, completed and asked for through the helper (helper.h).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "common/bundle/bundle.h"

namespace oomrec::helper {

// The dying process' way to write(): a helper that shares our memory but is no thread of the
// process (clone with CLONE_VM on a reserved stack, no exit signal, all signals blocked, inherited
// descriptors closed but fd 2), which also prints the report. Waits at most `seconds` for the data;
// the fsync and the rename may still be under way when it returns: see finish().
struct Report {
  bool quiet = false;
  bool told = false;  // by an earlier try, which failed: all but where the bundle is now
};
// `texts_written` (may be null): whether all of Cause::texts could be used.
bundle::Result write_from_process(InHook, const bundle::Cause&, const bundle::Destination&,
                                  const Report&, unsigned seconds,
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

// complete() for the last bundle that write_from_process() wrote in this process, with the repeats
// of its request that the session has counted by now, by a helper that is waited for at most
// `seconds`; with 0 it is only started, and finish() reaps it. False when there is no such bundle,
// or a helper is still at work.
bool complete_last(InHook, OutcomeKind, std::int32_t value, unsigned seconds) noexcept;

// The same when the process is about to die of the crash in the session's header, which follows
// from the refusal that the bundle tells: the bundle gets the crash, and its verdict. Waits for a
// helper at work, too. Prints the verdict's sentence unless quiet.
bool complete_last_by_crash(InHook, bool quiet, unsigned seconds) noexcept;

// complete_texts() for the bundle that write_from_process() wrote as number `number` of this
// process, by a helper that is waited for at most `seconds`. False also when some text is no JSON,
// see TextSpace.
bool complete_texts_of(InHook, std::uint64_t number, const text::ExceptionTexts&,
                       unsigned seconds) noexcept;

// The absolute path of that bundle, once it is in its place, which is waited for at most `seconds`.
// Empty: there is none. `buffer` is as long as a path may be.
std::string_view path_of(InHook, std::uint64_t number, std::span<char> buffer,
                         unsigned seconds) noexcept;

}  // namespace oomrec::helper
