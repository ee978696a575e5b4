// Ships bundles: makes their rows and archives, puts them into the store, and enters what arrived
// in the ledger. Blocks, so it runs in a child process.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <vector>

#include "tools/service/ship/store.h"

namespace oomrec::tools::service {

struct ShipSettings {
  Put put;
  unsigned raw_bundles = 3;  // of one signature a day; 0: only rows
};

// What is still to be shipped of a bundle, or the row of a process that ended well: the file of
// that is deleted once it has arrived.
struct Shipment {
  enum class Part : std::uint8_t { row, raw };
  Part part = Part::row;
  std::filesystem::path bundle;  // or the file (bundles::is_life)
  auto operator<=>(const Shipment&) const = default;
};

// How the process of the bundle ended is not known yet: a row of it is not the last one.
bool awaits_end(const std::filesystem::path& bundle);

// `directories`: of the bundles that count for the bounds of a day. `is_last_try`: a bundle that
// cannot be read is given up. `scratch`: a directory for files, which it removes. Returns how many
// could not be shipped; ends when the store cannot be reached.
int ship(const std::vector<Shipment>& shipments, const ShipSettings& settings,
         const std::set<std::filesystem::path>& directories, const std::filesystem::path& scratch,
         bool is_last_try);

}  // namespace oomrec::tools::service
