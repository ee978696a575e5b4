// symbols.json of a bundle: names that its writer knew, for a machine without the program's files.
#pragma once

#include <filesystem>
#include <string>
#include <unordered_map>
#include <vector>

#include "tools/base/json.h"
#include "tools/recording/symbolize/module_symbols.h"

namespace oomrec::tools::recording {

class StoredSymbols {
 public:
  // Empty when there is no such file; what is not understood in it is passed over.
  static StoredSymbols load(const std::filesystem::path& file);
  static StoredSymbols of(const Json& root);  // of what stands in such a file

  void add(const std::string& build_id, std::uint64_t offset, Location location);

  // Innermost first; empty when nothing is stored. `build_id` in hexadecimal.
  const std::vector<Location>& find(const std::string& build_id, std::uint64_t offset) const;

 private:
  std::unordered_map<std::string, std::vector<Location>> by_key_;
};

}  // namespace oomrec::tools::recording
