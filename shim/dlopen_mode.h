// The library in a process that it was not started with: loaded by dlopen it comes after libc in
// the global scope, or is not in it, so nothing is interposed.
#pragma once

namespace oomrec::shim {

// Asked by the constructor. True: it stays off, without a word, until oomrec_start().
bool is_dlopened() noexcept;

inline constexpr const char* kOffByMode =
    "everything: recording is off, by `oomrec run --mode off` or OOMREC_MODE=off";
inline constexpr const char* kOffByPrivilege =
    "everything: the program is privileged (setuid, setgid or capabilities), and is not recorded";

// What oomrec_missing() says; a literal, or as long-lived.
void set_missing(const char* what) noexcept;

}  // namespace oomrec::shim
