// What of a text may be told to strangers.
//
// Paths lose their beginning: what is left tells the code, not the machine or its user. The names
// of the host and of users are found in the recording itself and taken out of every text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/recording/reading/recording.h"

namespace oomrec::tools::bundles {

class RedactedWords {
 public:
  explicit RedactedWords(const recording::Recording& recording);

  // "/site-packages/numpy/core/numeric.py", "/usr/lib/libm.so.6", else the last two components,
  // without those of the working directory and of the home directory: "src/train.py".
  std::string path(std::string_view path) const;

  // `text` with the paths in it so shortened, and without the names of host and users.
  std::string text(std::string_view text) const;

 private:
  std::string text_without_names(std::string_view text) const;
  bool is_private(std::string_view component) const;

  std::string working_directory_;
  std::vector<std::string> names_;  // of the host and of users
};

}  // namespace oomrec::tools::bundles
