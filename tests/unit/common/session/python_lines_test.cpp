#include "common/session/python_lines.h"

#include "tests/unit/common/session/python_line_fixtures.h"

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

using namespace oomrec;

using oomrec::session::kNoInstruction;
using oomrec::session::python_line;

namespace {

std::uint32_t line_of(const Fixture& code, std::uint32_t instruction) {
  return session::python_line(code.version_hex, code.first_line, code.table, instruction);
}

}  // namespace

TEST_CASE("every instruction has the same line as in its interpreter") {
  std::size_t instructions = 0;
  for (const Fixture& code : kFixtures) {
    CAPTURE(code.label);
    CAPTURE(code.version_hex);
    for (std::size_t i = 0; i < code.runs.size(); ++i) {
      const std::uint32_t end =
          i + 1 < code.runs.size() ? code.runs[i + 1].instruction : code.code_bytes;
      const int line = code.runs[i].line;
      const std::uint32_t expected = line < 0 ? code.first_line : static_cast<std::uint32_t>(line);
      for (std::uint32_t at = code.runs[i].instruction; at < end; at += 2, ++instructions) {
        CAPTURE(at);
        CHECK(line_of(code, at) == expected);
      }
    }
  }
  CHECK(kFixtures.size() > 50);
  CHECK(instructions > 3000);
}

TEST_CASE("a frame that has not started is at its function's first line") {
  for (const Fixture& code : kFixtures)
    CHECK(line_of(code, session::kNoInstruction) == code.first_line);
}

TEST_CASE("a cut or forged table yields a line and is not read beyond its end") {
  std::mt19937 random(20261121);
  std::size_t rounds = 0;
  for (const Fixture& code : kFixtures) {
    for (std::size_t bytes = 0; bytes <= std::min<std::size_t>(code.table.size(), 64); ++bytes) {
      std::vector<char> table(code.table.begin(), code.table.begin() + static_cast<long>(bytes));
      for (int flips = 0; flips < 4; ++flips, ++rounds) {
        const std::string_view view(table.data(), table.size());
        CHECK(session::python_line(code.version_hex, code.first_line, view, code.code_bytes / 2) >
              0);
        if (!table.empty()) table[random() % table.size()] = static_cast<char>(random());
      }
    }
  }
  CHECK(rounds > 1000);
}

TEST_CASE("an empty line table yields the first line") {
  for (const std::uint32_t version : {0x030800f0u, 0x030a00f0u, 0x030b00f0u, 0x030f00f0u}) {
    CHECK(session::python_line(version, 7, {}, 10) == 7);
  }
}
