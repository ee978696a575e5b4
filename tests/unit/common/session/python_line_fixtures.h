// Code objects of each interpreter, with their line tables and the lines of their instructions.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace oomrec {

struct Run {
  std::uint32_t instruction;
  int line;  // -1: the interpreter has none
};
struct Fixture {
  std::uint32_t version_hex;
  const char* label;
  std::uint32_t first_line;
  std::uint32_t code_bytes;
  std::string_view table;
  std::vector<Run> runs;
};

// clang-format off
inline const std::vector<Fixture> kFixtures = {
#include "python_line_fixtures.inc"
};
// clang-format on

}  // namespace oomrec
