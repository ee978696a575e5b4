// The distinct texts of a report, each once: the page refers to them by number.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace oomrec::tools::views {

class TextTable {
 public:
  TextTable();

  // Of `text` as it may be shown: printable, and cut where it is longer than any true name.
  std::uint32_t id(std::string_view text);

  const std::vector<std::string>& texts() const { return texts_; }  // 0: the empty one

 private:
  std::vector<std::string> texts_;
  std::unordered_map<std::string, std::uint32_t> ids_;
};

}  // namespace oomrec::tools::views
