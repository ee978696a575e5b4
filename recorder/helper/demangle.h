// Short C++ names for the report: "train::Model::grow" for _ZN5train5Model4growEm.
//
// Scopes and names only, no parameters or template arguments. Allocates nothing; the tools print
// full names.
#pragma once

#include <span>
#include <string_view>

namespace oomrec::helper {

// The name in `buffer`. `symbol` itself when it is not a C++ symbol, or has parts that this parser
// does not support (lambdas, local functions, most operators, expansions of substitutions).
std::string_view demangled(std::string_view symbol, std::span<char> buffer) noexcept;

// Whether a C++ symbol is the standard library's: every module that uses its templates contains
// copies of them.
bool is_standard_library(std::string_view symbol) noexcept;

}  // namespace oomrec::helper
