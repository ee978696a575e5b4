// Whether a Python line is the program's own, or belongs to a library that it uses.
//
// A figure is most useful at the innermost line that its reader can change. Works on text only, for
// the emergency writer and the tools.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace oomrec::text {

// Not the program's own: installed packages, the standard library
// ("…/lib/python3.11/json/decoder.py", also in a zip), and code without a file, except code typed
// in or given with -c.
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
