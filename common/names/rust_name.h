// Names of Rust functions.
//
// Both leave out what only tells builds of a crate apart: hashes and disambiguators. They return
// false if the symbol is not of that kind, or truncated; `out` then holds part of a name.
#pragma once

#include <string_view>

#include "common/text/text.h"

namespace oomrec::names {

// RFC 2603: "<train::Row<u32, 4>>::push" for _RNvMCs4Jz_5trainINtB2_3RowmKj4_E4push.
bool add_rust_v0_name(text::Text& out, std::string_view symbol) noexcept;

// The form before: "train::push" for _ZN5train4push17h39881ba72e98ccdeE.
bool add_rust_legacy_name(text::Text& out, std::string_view symbol) noexcept;

}  // namespace oomrec::names
