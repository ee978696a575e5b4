// The distinct texts of a report. The page refers to them by number.
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

  // The number of `text`, made printable and cut at a length beyond any real name.
  std::uint32_t id(std::string_view text);

  const std::vector<std::string>& texts() const { return texts_; }  // the first is empty

 private:
  std::vector<std::string> texts_;
  std::unordered_map<std::string, std::uint32_t> ids_;
};

}  // namespace oomrec::tools::views
