// Redacts texts.
//
// Shortens paths so that they still identify the code, but not the machine or its user. Removes the
// names of the host and of users, which it finds in the recording.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/recording/reading/recording.h"

namespace oomrec::tools::bundles {

class TextRedactor {
 public:
  explicit TextRedactor(const recording::Recording& recording);

  // Of an installed file, the path from "/site-packages/" on; system paths stay:
  // "/usr/lib/libm.so.6". Of others, the last two components below the working directory or home:
  // "src/train.py".
  std::string path(std::string_view path) const;

  // `text` with its paths shortened, and without the names of host and users.
  std::string text(std::string_view text) const;

 private:
  std::string text_without_names(std::string_view text) const;
  bool is_private(std::string_view component) const;

  std::string working_directory_;
  std::vector<std::string> names_;  // of the host and of users
};

}  // namespace oomrec::tools::bundles
