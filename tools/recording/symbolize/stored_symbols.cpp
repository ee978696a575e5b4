#include "tools/recording/symbolize/stored_symbols.h"

#include <fmt/format.h>

#include "tools/recording/symbolize/function_name.h"

namespace oomrec::tools::recording {
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
  const Json& symbols = member(root, "symbols");
  if (!symbols.is_array()) return stored;
  for (const Json& symbol : symbols) {
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
