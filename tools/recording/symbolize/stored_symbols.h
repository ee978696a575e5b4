// A bundle's symbols.json: symbols that its writer resolved, for machines without the program's
// files.
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
  // Empty if the bundle has no such file. Skips entries that it does not understand.
  static StoredSymbols load(const std::filesystem::path& bundle);
  static StoredSymbols of(const Json& root);  // from the contents of such a file

  void add(const std::string& build_id, std::uint64_t offset, LineInfo line_info);

  // Innermost first; empty: not stored. `build_id` in hexadecimal.
  const std::vector<LineInfo>& find(const std::string& build_id, std::uint64_t offset) const;
  bool has_generated_code() const { return has_generated_code_; }  // names of it

 private:
  std::unordered_map<std::string, std::vector<LineInfo>> by_key_;
  bool has_generated_code_ = false;
};

}  // namespace oomrec::tools::recording
