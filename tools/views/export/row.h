// A death as one line of JSON, for a table of many (docs/schemas/row.json): small, and with names
// of code alone. It has no argument, variable, message or directory, and of the environment the
// labels of common/options/label_variables.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tools/base/json.h"
#include "tools/bundles/signature/signature.h"
#include "tools/bundles/store/bundles.h"
#include "tools/bundles/store/source.h"
#include "tools/recording/symbolize/cached_symbols.h"

namespace oomrec::tools::views {

inline constexpr std::size_t kMostRowBytes = 16 * 1024;

inline constexpr const char* kExitedWell = "exited 0";  // an outcome, as in metadata.json

// A process that ended well, as somebody saw it from outside.
struct Life {
  std::uint64_t resident_peak_bytes = 0;  // the highest reading; 0: none
  double weight = 1;                      // how many processes the row stands for
};

// The row of a life, without its newline: as of a death, but without holders and time line.
std::string life_line(const bundles::Source& source, const Life& life);

// The columns that a signature fills.
void write_signature(Json& row, const bundles::Signature& signature);

// Writes the rows of several bundles. Those of one directory share what is known of its episodes,
// those of one program the symbols of its modules.
class RowWriter {
 public:
  // One line, without its newline. Throws Error for a PyTorch snapshot, which is of no process.
  std::string line_of(const bundles::Source& source);

  // bundles::bundles_in() of one directory, read once.
  const std::vector<bundles::BundleSummary>& bundles_in(const std::filesystem::path& directory);

 private:
  std::map<std::filesystem::path, std::vector<bundles::BundleSummary>> directories_;
  std::vector<std::shared_ptr<recording::CachedSymbols>> open_modules_;
};

}  // namespace oomrec::tools::views
