#include "common/system/text.h"

#include <doctest/doctest.h>

#include <string_view>

namespace oomrec::system {
namespace {

TEST_CASE("the fields of /proc/PID/stat are those behind the name, whatever that is") {
  for (const std::string_view name : {"cat", "", "a b", "3) Z 4 (", "))", "("}) {
    char text[64];
    Text(text) << "17 (" << name << ") S 16 -1 0\n";
    CHECK(stat_field(text, 3) == "S");
    CHECK(stat_field(text, 4) == "16");
    CHECK(stat_field(text, 5) == "-1");
    CHECK(stat_field(text, 6) == "0");
    CHECK(stat_field(text, 7).empty());
  }
}

TEST_CASE("a text that is none has no fields") {
  for (const std::string_view text : {"", "17 (cat", "17 (cat)", "17 (cat)\n", ")"})
    CHECK(stat_field(text, 3).empty());
}

}  // namespace
}  // namespace oomrec::system
