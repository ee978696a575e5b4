// Which programs of a run started without the recorder: a file beside the run's recordings, with a
// line for each.
//
// A recording cannot say it: a vfork child has none and must not write to its parent's, and that of
// a parent that ends well is removed. `oomrec run` reads the file at the end, and removes it.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/system/text.h"

namespace oomrec::session {

inline constexpr const char* kNotesSuffix = ".unrecorded";
inline constexpr std::uint64_t kMostNoteBytes = std::uint64_t{64} << 10;  // then no more are added

// "DIRECTORY/RUN.unrecorded" is appended to `path`; nothing, if `run` is no file's name.
void append_notes_path(system::Text& path, std::string_view directory,
                       std::string_view run) noexcept;

// A line "PID PARENT REASON".
struct UnrecordedNote {
  std::int32_t pid = 0;
  std::int32_t parent_pid = 0;
  std::string_view reason;  // "hello was started without LD_PRELOAD"; empty: withdraws the last one
};

// Appends the note. False: it is not there, as the file cannot be written or is full; what
// withdraws a note always fits. Makes system calls and uses its own stack, nothing else: it runs in
// vfork children.
bool add_note(const char* path, const UnrecordedNote&) noexcept;

}  // namespace oomrec::session
