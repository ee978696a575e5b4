// Expands the patterns of a dump directory: %p pid, %h host, %e program, %t start time, %% a
// percent sign; and those of the user's command.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace oomrec::text {

struct PathWords {
  std::int32_t pid = 0;
  std::string_view host;
  std::string_view program;  // a path; its last component is used
  std::uint64_t start_realtime_ns = 0;
};

// Writes the NUL-terminated path to `out`. A slash inside a value becomes '_', so that no value
// leads to another directory. An unknown pattern stays unchanged. False: it does not fit.
bool expand_path(std::string_view pattern, const PathWords&, char* out,
                 std::size_t capacity) noexcept;

// What the command of --on-oom-exec gets in its environment, besides its arguments "$1" and "$2".
inline constexpr std::string_view kPidVariable = "OOMREC_PID";
inline constexpr std::string_view kBundleVariable = "OOMREC_BUNDLE";

// Expands the command of --on-oom-exec: %p the pid, %b its bundle (nothing if there is none), %% a
// percent sign. An unknown pattern stays unchanged. False: it does not fit.
//
// A directory's name must not become code: the shell would run the $(rm -r ~) in it. So %b is the
// path itself only if no character in it means anything to a shell, in any quoting. For other paths
// %b becomes a reference to OOMREC_BUNDLE, quoted as its position requires. A shell does not parse
// a variable's value, so the reference is harmless even where the position is misjudged, as after
// an apostrophe in a comment.
bool expand_command(std::string_view pattern, std::int64_t pid, std::string_view bundle, char* out,
                    std::size_t capacity) noexcept;

}  // namespace oomrec::text
