// Whose code a Python line is: the program's, or that of what it stands on.
//
// A figure is best told by the innermost line that its reader can change. Text only: for the
// emergency writer and the tools alike.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace oomrec::text {

// Installed packages, the standard library ("…/lib/python3.11/json/decoder.py", the same in a zip),
// and code without a file, other than what was typed or given with -c.
constexpr bool is_programs_own(std::string_view python_file) noexcept {
  constexpr std::array<std::string_view, 5> kInstalled = {
      "site-packages/", "dist-packages/", "/lib/python3", "/lib64/python3", "/pypy3"};
  constexpr std::array<std::string_view, 3> kTyped = {"<string>", "<stdin>", "<ipython"};
  const auto has = [&](std::string_view word) { return python_file.find(word) != word.npos; };
  const auto begins = [&](std::string_view word) { return python_file.starts_with(word); };
  if (begins("<")) return std::any_of(kTyped.begin(), kTyped.end(), begins);
  return !python_file.empty() && std::none_of(kInstalled.begin(), kInstalled.end(), has);
}

}  // namespace oomrec::text
