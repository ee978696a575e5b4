// Resident memory that grew although nothing was allocated: pages of files that the program reads,
// or of memory that it shares.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tools/base/json.h"
#include "tools/bundles/store/source.h"

namespace oomrec::tools::findings {

struct ResidentGrowth {
  std::int64_t bytes = 0;            // of the resident memory, since its first figure
  std::int64_t allocated_bytes = 0;  // of what was live on the host, in the same time
  double seconds = 0;

  // So much that the user may have seen it, and most of it was not allocated.
  bool is_notable() const;
};

// Until the latest look at the process' pages; nothing: there was none.
std::optional<ResidentGrowth> resident_growth_of(const bundles::Source&);

// "resident memory grew by 570.2 MiB in 12.0 s, and what was allocated by 0 B." Empty: it is not
// notable.
std::string resident_growth_text(const bundles::Source&);

Json resident_growth_json(const bundles::Source&);

}  // namespace oomrec::tools::findings
