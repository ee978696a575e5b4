#include "tools/recording/symbolize/cached_symbols.h"

#include <fmt/format.h>

#include <exception>

namespace oomrec::tools::recording {

CachedSymbols::CachedSymbols(std::unique_ptr<ModuleSymbols> module, std::string_view build_id,
                             std::shared_ptr<const CacheDirectory> cache)
    : module_(std::move(module)), cache_(build_id.empty() ? nullptr : std::move(cache)) {
  if (cache_ == nullptr) return;
  key_ = fmt::format("{}\n{}\n{}", OOMREC_VERSION, build_id, module_->sources());
  name_ = fmt::format("{}-{:016x}", build_id, KnownSymbols::hash_of(key_));
  known_ = KnownSymbols{cache_->read(name_), key_};
}

CachedSymbols::~CachedSymbols() {
  if (found_.empty() || !module_->is_whole()) return;
  try {
    keep();
  } catch (const std::exception&) {
    // No memory: the next command looks again.
  }
}

std::vector<Location> CachedSymbols::find(std::uint64_t address) {
  if (auto known = known_.find(address)) return std::move(*known);
  std::vector<Location> locations = module_->find(address);
  if (cache_ != nullptr) found_.emplace(address, locations);
  return locations;
}

// With what another command has kept meanwhile.
void CachedSymbols::keep() const {
  KnownSymbols::Answers answers = KnownSymbols{cache_->read(name_), key_}.all();
  answers.insert(found_.begin(), found_.end());
  cache_->write(name_, KnownSymbols::bytes_of(answers, key_));
}

}  // namespace oomrec::tools::recording
