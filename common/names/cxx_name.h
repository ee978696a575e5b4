// Short C++ names: "train::Model::grow" for _ZN5train5Model4growEm.
//
// Scopes and names only, no parameters or template arguments. The tools print full names.
#pragma once

#include <span>
#include <string_view>

namespace oomrec::names {

// The name in `buffer`. `symbol` itself when it is not a C++ symbol, or has parts that this parser
// does not support (lambdas, local functions, most operators, expansions of substitutions).
std::string_view short_cxx_name(std::string_view symbol, std::span<char> buffer) noexcept;

}  // namespace oomrec::names
