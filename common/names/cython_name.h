// Names of Cython functions: "numpy.random._generator.Generator.standard_normal" for
// __pyx_pw_5numpy_6random_10_generator_9Generator_31standard_normal.
#pragma once

#include <string_view>

#include "common/text/text.h"

namespace oomrec::names {

// False: the symbol is not that of a function in a .pyx file, or truncated; `out` then holds part
// of a name.
bool add_cython_name(text::Text& out, std::string_view symbol) noexcept;

}  // namespace oomrec::names
