// Whether a program can be recorded, determined from its file before it starts.
//
// Used by `oomrec run`, `oomrec info`, and the exec and spawn hooks. Allocates nothing, takes no
// lock, never throws and preserves errno: it may run in a vfork child, which shares its parent's
// memory. Descriptors are open only while it reads, close-on-exec, and never 0–2. A file that
// cannot be read counts as suitable: the real exec then reports the error.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/machine/platform.h"

namespace oomrec::program {

// clang-format off
// name             what it means, to be read after the program's name
#define OOMREC_SUITABILITIES(X) \
  X(suitable,       "can be recorded") \
  X(other_machine,  "is not a 64-bit " OOMREC_MACHINE " program") \
  X(static_linked,  "is statically linked, and no library can be preloaded into it") \
  X(other_libc,     "does not use glibc, the only C library for which the recorder is made") \
  X(privileged,     "is setuid, setgid or has file capabilities, and the loader refuses preloaded libraries") \
  X(sanitizer,      "is built with a sanitizer whose runtime must come first")
// clang-format on

#define X(name, meaning) name,
enum class Suitability : std::uint8_t { OOMREC_SUITABILITIES(X) };
#undef X

// The meaning, for one line on stderr: "PROGRAM " + meaning_of(…).
std::string_view meaning_of(Suitability) noexcept;
std::string_view name_of(Suitability) noexcept;

struct Inspection {
  Suitability suitability = Suitability::suitable;
  int error = 0;  // ENOENT or EACCES if there is no such program: the errno of exec
};

// The program that `execve(file)` would start, through #! lines to their interpreter.
Inspection inspect(const char* file) noexcept;

// The program that `execvp(file)` would start with this PATH (NULL: the C library's default),
// unless `file` has a slash.
Inspection inspect_in_path(const char* file, const char* path) noexcept;

// The program that `execveat(directory, file, …, flags)` would start.
Inspection inspect_at(int directory, const char* file, int flags) noexcept;

}  // namespace oomrec::program
