// Symbols that were found before: a bundle's symbols.json, and a module's symbols across
// commands.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tools/base/json.h"
#include "tools/recording/symbolize/cache_directory.h"
#include "tools/recording/symbolize/module_symbols.h"
#include "tools/recording/symbolize/symbol_cache_file.h"

namespace oomrec::tools::recording {

class CachedSymbols {
 public:
  // Those of the module at `path`. Bundles of one program that this thread has open at once share
  // them, if they have the same cache. nullptr as for ModuleSymbols::open().
  static std::shared_ptr<CachedSymbols> open(const std::string& path,
                                             std::span<const std::uint8_t> build_id,
                                             const std::string& hexadecimal_build_id,
                                             const std::shared_ptr<const CacheDirectory>& cache);
  // Those that this thread has open. They stay so for later bundles while somebody keeps them.
  static std::vector<std::shared_ptr<CachedSymbols>> all_open();

  // `build_id` in hexadecimal. Without one, or without a cache (nullptr), nothing is cached.
  CachedSymbols(std::unique_ptr<ModuleSymbols> module, std::string_view build_id,
                std::shared_ptr<const CacheDirectory> cache);
  ~CachedSymbols();  // saves the new answers
  CachedSymbols(const CachedSymbols&) = delete;
  CachedSymbols& operator=(const CachedSymbols&) = delete;

  std::vector<LineInfo> find(std::uint64_t address);

 private:
  void save() const;

  std::unique_ptr<ModuleSymbols> module_;
  std::shared_ptr<const CacheDirectory> cache_;
  std::string key_, name_;
  SymbolCacheFile cached_;
  SymbolCacheFile::Answers new_answers_;
};

// A bundle's symbols.json: symbols that its writer resolved, for machines without the program's
// files.
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
