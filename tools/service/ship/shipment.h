// Ships bundles: makes their rows and archives, puts them into the store, and enters what arrived
// in the ledger. Blocks, so it runs in a child process.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "tools/bundles/store/source.h"
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

// A redacted copy of a bundle, as one file.

// The suffix of the archives that this machine can make: "tar.zst", or "tar.gz" without zstd.
// Throws Error if it can make none.
std::string archive_suffix();

// Writes DIRECTORY/NAME.SUFFIX, which contains NAME/, where NAME is the bundle's. Returns its path;
// throws Error.
std::filesystem::path write_archive(const bundles::Source& source,
                                    const std::filesystem::path& directory,
                                    const std::string& suffix);

}  // namespace oomrec::tools::service
