// Numbers in text, and invalid ones.
#include "tools/base/text.h"

#include <doctest/doctest.h>

#include <cstdint>

using namespace oomrec::tools;

TEST_CASE("parse_number() accepts only a number that is the whole text") {
  CHECK(parse_number<unsigned>("17") == 17u);
  CHECK(parse_number<int>("-17") == -17);
  CHECK(parse_number<std::uint32_t>("d83d", 16) == 0xd83du);
  CHECK(parse_number<double>("0.25") == 0.25);
  for (const char* text : {"", " 17", "17 ", "+17", "-17", "17k", "0x11", "4294967296"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_number<std::uint32_t>(text));
  }
}

TEST_CASE("take_number() removes only the number at the beginning") {
  std::string_view text = "4,11295";
  CHECK(take_number<int>(text) == 4);
  CHECK(text == ",11295");
  CHECK_FALSE(take_number<int>(text));
  CHECK(text == ",11295");

  text = "99999999999";
  CHECK_FALSE(take_number<std::uint32_t>(text));
  CHECK(text == "99999999999");
}
