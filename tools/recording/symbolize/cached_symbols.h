// A module's names, of which those that an earlier command found are not looked for again.
//
// An answer is that of ModuleSymbols: it is kept for one build of the module and the very files of
// debug information that are here now, so that what is installed or fetched later is seen.
#pragma once

#include <memory>
#include <string>

#include "tools/recording/symbolize/cache_directory.h"
#include "tools/recording/symbolize/known_symbols.h"
#include "tools/recording/symbolize/module_symbols.h"

namespace oomrec::tools::recording {

class CachedSymbols {
 public:
  // `build_id` in hexadecimal. Without one, or without a cache (nullptr), nothing is kept.
  CachedSymbols(std::unique_ptr<ModuleSymbols> module, std::string_view build_id,
                std::shared_ptr<const CacheDirectory> cache);
  ~CachedSymbols();  // keeps what was found
  CachedSymbols(const CachedSymbols&) = delete;
  CachedSymbols& operator=(const CachedSymbols&) = delete;

  std::vector<Location> find(std::uint64_t address);

 private:
  void keep() const;

  std::unique_ptr<ModuleSymbols> module_;
  std::shared_ptr<const CacheDirectory> cache_;
  std::string key_, name_;
  KnownSymbols known_;
  KnownSymbols::Answers found_;
};

}  // namespace oomrec::tools::recording
