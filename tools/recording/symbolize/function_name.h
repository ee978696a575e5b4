// Names of functions for people: demangled, cut to a width, and told from those of standard
// libraries and of Python's import system.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "tools/recording/symbolize/locations.h"

namespace oomrec::tools::recording {

// The name in the source, of Cython, Rust or C++; `symbol` itself if it is not mangled.
std::string demangled(const char* symbol);

// A demangled name in at most `columns`, of which there are at least 4. Template arguments,
// parameters and outer scopes give way to "…"; the function's own name stays:
// "std::vector<train::Row, …>::_M_realloc_insert<…>(…)".
std::string shortened_name(std::string_view name, std::size_t columns);

// A native function's name in its source alone, the same from every build: "train::Rows::push" for
// "void train::Rows<int>::push(int) [clone .isra.0]". Left out are the returned type, parameters,
// template arguments, ABI tags, unnamed scopes, closures, and the parts that a compiler splits off.
std::string plain_name(std::string_view name);

// Whether it belongs to Python's import system.
bool is_import_machinery(const Location& location);

// Whether it is a native function with a name, of the program's own: of no library that came with
// the system or with a Python package, and not the interpreter's.
bool is_own_function(const Location& location, const Locations& locations);

// Whether a native function is an allocator's or the standard library's, wherever it was compiled
// into.
bool is_library_function(const Location& location);

}  // namespace oomrec::tools::recording
