// The library loaded by dlopen instead of at the process' start: it is after libc in the global
// scope, or not in it, so it interposes nothing.
#pragma once

namespace oomrec::shim {

// First called by the constructor. True: the library stays off, silently, until oomrec_start() or
// oomrec_attach().
bool is_dlopened() noexcept;

inline constexpr const char* kOffByMode =
    "everything: recording is off, by `oomrec run --mode off` or OOMREC_MODE=off";
inline constexpr const char* kOffByPrivilege =
    "everything: the program is privileged (setuid, setgid or capabilities), and is not recorded";

// Sets the result of oomrec_missing(); a literal, or a text that lives as long.
void set_missing(const char* what) noexcept;

}  // namespace oomrec::shim
