// Where a process ran and for whom, from the labels in its recording.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "tools/base/json.h"
#include "tools/bundles/store/source.h"

namespace oomrec::tools::bundles {

class Labels {
 public:
  explicit Labels(const Source& source);

  // The value of a row's column: of the first of its labels that is there. Empty: none is.
  std::string column(std::string_view name) const;

  // The labels that have no column of their own, at most `most`.
  Json others(std::size_t most) const;

 private:
  std::map<std::string, std::string, std::less<>> labels_;
};

}  // namespace oomrec::tools::bundles
