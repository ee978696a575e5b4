// Rows that earlier releases wrote, with today's signatures.
#pragma once

#include <string>
#include <string_view>

namespace oomrec::tools::views {

// The row with the signature that today's rules give its holders; the one that it had is its
// `signature_alias`. A line that is no row of an earlier version stays as it is.
std::string renewed_row(std::string_view line);

}  // namespace oomrec::tools::views
