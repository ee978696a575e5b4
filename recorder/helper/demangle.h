// Names of C++ functions as a report says them: "train::Model::grow" for _ZN5train5Model4growEm.
//
// Only scopes and names: no parameters, no template arguments. Allocates nothing; the tools say the
// whole name.
#pragma once

#include <span>
#include <string_view>

namespace oomrec::helper {

// The name in `buffer`, or `symbol` itself: no C++ symbol, or one with parts not read here
// (lambdas, local functions, most operators, what a substitution stands for).
std::string_view demangled(std::string_view symbol, std::span<char> buffer) noexcept;

// Whether a C++ symbol is of the standard library: its templates are compiled into whoever uses
// them.
bool is_standard_library(std::string_view symbol) noexcept;

}  // namespace oomrec::helper
