// A module's symbols, cached across commands.
//
// A cached answer is that of ModuleSymbols. It is valid for one build of the module, and for the
// debug files that are installed now: installing or fetching others invalidates it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

}  // namespace oomrec::tools::recording
