#include "tools/views/report/text_table.h"

#include "tools/base/text.h"

namespace oomrec::tools::views {
namespace {

// Names of C++ templates can have thousands of characters.
constexpr std::size_t kLongest = 4096;

}  // namespace

TextTable::TextTable() { id(""); }

std::uint32_t TextTable::id(std::string_view text) {
  // A character has at most four bytes. Cutting first saves making a long tail printable.
  std::string shown = clip(printable(text.substr(0, 4 * kLongest)), kLongest);
  const auto [at, is_new] =
      ids_.try_emplace(std::move(shown), static_cast<std::uint32_t>(texts_.size()));
  if (is_new) texts_.push_back(at->first);
  return at->second;
}

}  // namespace oomrec::tools::views
