// Untrusted JSON, before it becomes part of one of our files.
#include "common/text/json_check.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>

using namespace oomrec;
using namespace oomrec::text;

namespace {

text::JsonKind kind_of(std::string text) { return text::check_json(text); }

std::string nested(std::size_t levels) {
  return std::string(levels, '[') + std::string(levels, ']');
}

}  // namespace

TEST_CASE("values of every kind") {
  for (const char* const object :
       {"{}", " {\n} ", R"({"a": 1})", R"({"a": [1, -0.5e-7, "x", true, false, null], "b": {}})",
        R"({"\u00e4\n\"": "\ud83d\ude00 ä"})", R"({"a": 1e300})", R"({"a": 1e-999})",
        R"({"a": 0e999})"}) {
    CAPTURE(object);
    CHECK(kind_of(object) == text::JsonKind::object);
  }
  for (const char* const other : {"[]", "[[], {}]", "1", "\"x\"", "null", " 0 "}) {
    CAPTURE(other);
    CHECK(kind_of(other) == text::JsonKind::other);
  }
  CHECK(kind_of(nested(128)) == text::JsonKind::other);
}

TEST_CASE("what is not JSON") {
  for (const char* const none : {"",
                                 " ",
                                 "{",
                                 "}",
                                 "{]",
                                 "[}",
                                 "{}{}",
                                 "{},",
                                 "[1,]",
                                 "[,1]",
                                 "{\"a\"}",
                                 "{\"a\":}",
                                 "{a: 1}",
                                 "{\"a\": 1,}",
                                 "{'a': 1}",
                                 "[01]",
                                 "[1.]",
                                 "[.5]",
                                 "[+1]",
                                 "[1e]",
                                 "[--1]",
                                 "nul",
                                 "NaN",
                                 "[Infinity]",
                                 "\"",
                                 "\"\\x\"",
                                 "\"\\u12\"",
                                 "\"\\",
                                 "\"\n\"",
                                 "\"\xff\"",
                                 "\"\xed\xa0\x80\"",
                                 "[1e999]",
                                 "[1e309]",
                                 "/* */ 1",
                                 "\xef\xbb\xbf{}"}) {
    CAPTURE(none);
    CHECK(kind_of(none) == text::JsonKind::none);
  }
  CHECK(kind_of(nested(129)) == text::JsonKind::none);
  CHECK(kind_of(std::string(400, '9')) == text::JsonKind::none);
  CHECK(kind_of(std::string("{\0}", 3)) == text::JsonKind::none);
}

TEST_CASE("half a surrogate pair is replaced, a complete one stays") {
  std::string text = R"(["\ud800", "\udc00x", "\ud800\ud800", "\ud83d\ude00", "\uD800\n"])";
  REQUIRE(text::check_json(text) == text::JsonKind::other);
  CHECK(text == R"(["\ufffd", "\ufffdx", "\ufffd\ufffd", "\ud83d\ude00", "\ufffd\n"])");
}

TEST_CASE("other readers accept whatever passes") {
  const std::string alphabet = "{}[]\",:0123456789.eE+-\\utruefalsn \n";
  std::mt19937 random{4711};
  unsigned passed = 0;
  for (int round = 0; round < 200'000; ++round) {
    std::string text = round % 2 == 0 ? "{\"a\":" : "[";
    for (std::size_t length = random() % 9; length != 0; --length)
      text += alphabet[random() % alphabet.size()];
    text += round % 2 == 0 ? "}" : "]";
    if (text::check_json(text) == text::JsonKind::none) {
      CAPTURE(text);
      CHECK_FALSE(nlohmann::json::accept(text));
    } else {
      ++passed;
      CHECK(nlohmann::json::accept(text));
    }
  }
  CHECK(passed > 1000);
}
