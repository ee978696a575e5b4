// What a process' resident memory consists of, by the latest look at its pages: kinds that add up
// (session::ResidentKind).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/base/json.h"
#include "tools/bundles/store/source.h"

namespace oomrec::tools::print {

// When the pages were looked at: "at the last look, 1.2 s before the end". Empty: never.
std::string time_of_look(const bundles::Source&);

// A line for each kind, the largest first; empty: the pages were never looked at.
std::string resident_memory_text(const bundles::Source&);

// Resident memory that has no holder, and why that may be. At least a MiB, the largest first;
// nothing unless holders weigh what is resident.
struct UnheldPart {
  std::uint64_t bytes = 0;
  std::string_view name;  // "anonymous memory without a holder"
  std::string reason;     // in a page, after its name
};
std::vector<UnheldPart> unheld_parts(const bundles::Source&);

// "570.2 MiB of the 728.9 MiB that are resident are pages of files, …" Empty: it is no notable
// part, or nobody has looked.
std::string file_pages_text(const bundles::Source&);

// Null: the pages were never looked at.
Json resident_memory_json(const bundles::Source&);

}  // namespace oomrec::tools::print
