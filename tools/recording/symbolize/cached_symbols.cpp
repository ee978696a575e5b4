#include "tools/recording/symbolize/cached_symbols.h"

#include <fmt/format.h>

#include <exception>
#include <map>

#include "tools/recording/symbolize/function_name.h"

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

namespace {

std::string key_of(const std::string& build_id, std::uint64_t offset) {
  return fmt::format("{}+{:x}", build_id, offset);
}

}  // namespace

StoredSymbols StoredSymbols::load(const std::filesystem::path& bundle) {
  return of(read_json(bundle, "symbols.json"));
}

StoredSymbols StoredSymbols::of(const Json& root) {
  StoredSymbols stored;
  for (const Json& symbol : member(root, "symbols")) {
    // Code that was made at run time has none, only its address.
    const auto build_id = member(symbol, "module").is_null() ? std::optional<std::string>{""}
                                                             : text_of(symbol, "build_id");
    const auto offset = number_of(symbol, "offset");
    const Json& frames = member(symbol, "frames");
    if (!build_id || !offset || !frames.is_array()) continue;
    stored.has_generated_code_ = stored.has_generated_code_ || build_id->empty();
    std::vector<LineInfo>& lines = stored.by_key_[key_of(*build_id, *offset)];
    for (const Json& frame : frames) {
      const std::string name = text_of(frame, "function").value_or("");
      const Json& inlined = member(frame, "inlined");
      lines.push_back({demangled(name.c_str()), text_of(frame, "file").value_or(""),
                       static_cast<std::uint32_t>(number_of(frame, "line").value_or(0)),
                       inlined.is_boolean() && inlined.get<bool>()});
    }
  }
  return stored;
}

void StoredSymbols::add(const std::string& build_id, std::uint64_t offset, LineInfo line_info) {
  by_key_[key_of(build_id, offset)].push_back(std::move(line_info));
}

const std::vector<LineInfo>& StoredSymbols::find(const std::string& build_id,
                                                 std::uint64_t offset) const {
  static const std::vector<LineInfo> nothing;
  const auto at = by_key_.empty() ? by_key_.end() : by_key_.find(key_of(build_id, offset));
  return at != by_key_.end() ? at->second : nothing;
}

}  // namespace oomrec::tools::recording
