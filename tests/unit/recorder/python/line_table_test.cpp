#include "recorder/python/line_table.h"

#include <doctest/doctest.h>

#include <array>
#include <string>

#include "tests/unit/common/session/python_line_fixtures.h"

using namespace oomrec;
using stack::lines_of;

namespace {

bool has_columns(const Fixture& code) { return code.version_hex >= session::kLocationTables; }

}  // namespace

TEST_CASE("a table without columns has the line of each instruction, in less space") {
  std::size_t before = 0, after = 0;
  for (const Fixture& code : kFixtures) {
    CAPTURE(code.label);
    CAPTURE(code.version_hex);
    std::array<char, 16384> buffer;
    const std::string_view lines = lines_of(code.version_hex, code.table, buffer);
    for (std::uint32_t at = 0; at < code.code_bytes + 4; at += 2) {
      CAPTURE(at);
      REQUIRE(session::python_line(code.version_hex, code.first_line, lines, at) ==
              session::python_line(code.version_hex, code.first_line, code.table, at));
    }
    if (!has_columns(code)) {
      CHECK(lines.data() == code.table.data());
      continue;
    }
    before += code.table.size();
    after += lines.size();
    // A table that has none is as small as possible.
    std::array<char, 16384> again;
    CHECK(lines_of(code.version_hex, lines, again) == lines);
  }
  CHECK(before > 1000);
  CHECK(after < before / 2);
}

TEST_CASE("a table that does not fit stays as it is") {
  for (const Fixture& code : kFixtures) {
    std::array<char, 3> buffer{};
    const std::string_view lines = lines_of(code.version_hex, code.table, buffer);
    CHECK((lines == code.table || lines.size() <= buffer.size()));
  }
}

TEST_CASE("of a cut or forged table, what is valid stays") {
  for (const Fixture& code : kFixtures) {
    for (std::size_t bytes = 0; bytes < std::min<std::size_t>(code.table.size(), 40); ++bytes) {
      std::string table{code.table.substr(0, bytes)};
      if (bytes % 3 == 2) table[bytes / 2] = static_cast<char>(bytes * 37);
      std::array<char, 16384> buffer;
      const std::string_view lines = lines_of(code.version_hex, table, buffer);
      for (std::uint32_t at = 0; at < code.code_bytes; at += 2)
        REQUIRE(session::python_line(code.version_hex, code.first_line, lines, at) ==
                session::python_line(code.version_hex, code.first_line, table, at));
    }
  }
}
