#include "common/names/library_functions.h"

#include <algorithm>

namespace oomrec::names {
namespace {

// `core::` alone may be a C++ program's own; "<core::…>" is Rust's.
constexpr std::string_view kBeginnings[] = {
    "std::",        "__gnu_cxx::",    "operator new", "_ZNSt",
    "_ZNKSt",       "_ZSt",           "_ZNSa",        "_ZNSs",
    "_ZNKSs",       "_Znw",           "_Zna",         "_ZN9__gnu_cxx",
    "alloc::",      "hashbrown::",    "__rustc::",    "<std::",
    "<alloc::",     "_ZNK9__gnu_cxx", "<core::",      "__rust_",
    "<hashbrown::", "<&dyn core::",   "<&mut core::", "core::ops::function::",
};

constexpr std::string_view kAllocators[] = {
    "je_",
    "_rjem_",
    "duckdb_je_",
    "mi_",
    "_mi_",
    "tc_",
    "tcmalloc::",
    "snmalloc::",
    "rpmalloc",
    "rprealloc",
    "os::malloc",
    "os::realloc",
    "os::commit_memory",
    "os::pd_commit_memory",
    "Perl_safesys",
};

}  // namespace

bool is_allocator_function(std::string_view name) noexcept {
  return std::any_of(std::begin(kAllocators), std::end(kAllocators),
                     [&](std::string_view beginning) { return name.starts_with(beginning); });
}

bool is_library_function(std::string_view name) noexcept {
  return std::any_of(std::begin(kBeginnings), std::end(kBeginnings),
                     [&](std::string_view beginning) { return name.starts_with(beginning); });
}

}  // namespace oomrec::names
