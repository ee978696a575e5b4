#include "tools/recording/symbolize/cached_symbols.h"

#include <fmt/format.h>

#include <exception>
#include <map>

namespace oomrec::tools::recording {

namespace {

// By cache, build-id and path, without those that are closed by now.
std::map<std::string, std::weak_ptr<CachedSymbols>>& open_symbols() {
  thread_local std::map<std::string, std::weak_ptr<CachedSymbols>> all;
  std::erase_if(all, [](const auto& entry) { return entry.second.expired(); });
  return all;
}

}  // namespace

std::vector<std::shared_ptr<CachedSymbols>> CachedSymbols::all_open() {
  std::vector<std::shared_ptr<CachedSymbols>> open;
  for (const auto& [key, symbols] : open_symbols()) open.push_back(symbols.lock());
  return open;
}

std::shared_ptr<CachedSymbols> CachedSymbols::open(
    const std::string& path, std::span<const std::uint8_t> build_id,
    const std::string& hexadecimal_build_id, const std::shared_ptr<const CacheDirectory>& cache) {
  std::weak_ptr<CachedSymbols>& open = open_symbols()[fmt::format(
      "{}\n{}\n{}", static_cast<const void*>(cache.get()), hexadecimal_build_id, path)];
  if (auto symbols = open.lock()) return symbols;
  auto module = ModuleSymbols::open(path, build_id);
  if (module == nullptr) return nullptr;
  auto symbols = std::make_shared<CachedSymbols>(std::move(module), hexadecimal_build_id, cache);
  open = symbols;
  return symbols;
}

CachedSymbols::CachedSymbols(std::unique_ptr<ModuleSymbols> module, std::string_view build_id,
                             std::shared_ptr<const CacheDirectory> cache)
    : module_(std::move(module)), cache_(build_id.empty() ? nullptr : std::move(cache)) {
  if (cache_ == nullptr) return;
  key_ = fmt::format("{}\n{}\n{}", OOMREC_VERSION, build_id, module_->sources());
  name_ = fmt::format("{}-{:016x}", build_id, SymbolCacheFile::hash_of(key_));
  cached_ = SymbolCacheFile{cache_->read(name_), key_};
}

CachedSymbols::~CachedSymbols() {
  if (new_answers_.empty() || !module_->is_complete()) return;
  try {
    save();
  } catch (const std::exception&) {
    // Out of memory: the next command symbolizes them again.
  }
}

std::vector<LineInfo> CachedSymbols::find(std::uint64_t address) {
  if (auto cached = cached_.find(address)) return std::move(*cached);
  std::vector<LineInfo> lines = module_->find(address);
  if (cache_ != nullptr) new_answers_.emplace(address, lines);
  return lines;
}

// Reads the file again first, to keep what another command has added meanwhile.
void CachedSymbols::save() const {
  SymbolCacheFile::Answers answers = SymbolCacheFile{cache_->read(name_), key_}.all();
  answers.insert(new_answers_.begin(), new_answers_.end());
  cache_->write(name_, SymbolCacheFile::bytes_of(answers, key_));
}

}  // namespace oomrec::tools::recording
