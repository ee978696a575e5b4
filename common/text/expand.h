// The % words of a dump directory: %p pid, %h host, %e program, %t start time, %% a percent sign;
// and those of the user's command.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace oomrec::text {

struct PathWords {
  std::int32_t pid = 0;
  std::string_view host;
  std::string_view program;  // a path; its last part is used
  std::uint64_t start_realtime_ns = 0;
};

// Writes the NUL-terminated path to `out`. A slash inside a word becomes '_', so that no word leads
// to another directory; an unknown % word stays as it is. False: it does not fit.
bool expand_path(std::string_view pattern, const PathWords&, char* out,
                 std::size_t capacity) noexcept;

// Of --on-oom-exec: %p the process, %b its bundle (nothing where there is none), %% a percent sign;
// an unknown % word stays as it is. False: it does not fit.
bool expand_command(std::string_view pattern, std::int64_t pid, std::string_view bundle, char* out,
                    std::size_t capacity) noexcept;

}  // namespace oomrec::text
