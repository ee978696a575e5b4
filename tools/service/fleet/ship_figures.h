// What `oomrec watch --ship` has done since it started.
#pragma once

#include <cstdint>

namespace oomrec::tools::service {

struct ShipFigures {
  std::uint64_t rows = 0, raws = 0;  // that arrived
  std::uint64_t errors = 0;          // uploads that failed, and are tried again
  std::uint64_t unshipped = 0;       // bundles of which something is still to arrive

  bool operator==(const ShipFigures&) const = default;
};

}  // namespace oomrec::tools::service
