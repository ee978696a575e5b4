// JSON as the dying process checks and writes it.
#include "common/text/json_check.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "common/text/json_writer.h"
#include "common/text/text.h"
#include "tools/base/json.h"
#include "tools/base/json_value.h"

using namespace oomrec::text;
using namespace oomrec;

// --- Untrusted JSON, before it becomes part of one of our files

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

namespace {

// What `fill` writes, with a buffer of `capacity` bytes.
template <class Fill>
std::string written(std::size_t capacity, Fill&& fill, int* error = nullptr) {
  const int fd = memfd_create("json", MFD_CLOEXEC);
  std::string buffer(capacity, '\0');
  text::JsonWriter json{OutsideHooks::in_hook(), fd, buffer.data(), capacity};
  fill(json);
  const bool whole = json.finish();
  if (error != nullptr) *error = json.error();
  CHECK(whole == (json.error() == 0));
  std::string text(static_cast<std::size_t>(lseek(fd, 0, SEEK_END)), '\0');
  CHECK(pread(fd, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
  close(fd);
  return text;
}

std::string string_back(const std::string& text) {
  return tools::parse_json(written(3, [&](text::JsonWriter& json) { json.string(text); }))
      .get<std::string>();
}

}  // namespace

TEST_CASE("any bytes make valid JSON") {
  for (const char* text : {"", "plain", "quote\" back\\slash", "tab\t\n\r\x01\x1f\x7f", "h\xc3\xa9",
                           "\xe2\x82\xac", "\xf0\x9f\x98\x80"})
    CHECK(string_back(text) == text);

  const std::string bad = "\xef\xbf\xbd";
  CHECK(string_back("a\xff"
                    "b") == "a" + bad + "b");
  CHECK(string_back("\xc3") == bad);                                // cut
  CHECK(string_back("\xc0\xaf") == bad + bad);                      // overlong
  CHECK(string_back("\xed\xa0\x80") == bad + bad + bad);            // surrogate
  CHECK(string_back("\xf4\x90\x80\x80") == bad + bad + bad + bad);  // beyond U+10FFFF

  unsigned rounds = 0;
  for (unsigned first = 0; first < 256; ++first)
    for (unsigned second = 0; second < 256; ++second, ++rounds)
      string_back({static_cast<char>(first), static_cast<char>(second)});  // parses, or throws
  CHECK(rounds == 65536);
}

TEST_CASE("numbers, lines and nesting") {
  const std::string text = written(7, [](text::JsonWriter& json) {
    json.begin_object();
    json.key("max").number(~std::uint64_t{0});
    json.key("min").signed_number(INT64_MIN);
    json.key("time").fraction(1795256100'050, 3);
    json.key("utc").utc(1795256100'000'000'000U);
    json.key("row").begin_array(text::JsonLayout::one_line);
    json.boolean(true);
    json.null();
    json.end_array();
    json.key("empty").begin_object();
    json.end_object();
    json.end_object();
  });
  CHECK(text ==
        "{\n  \"max\": 18446744073709551615,\n  \"min\": -9223372036854775808,\n"
        "  \"time\": 1795256100.050,\n  \"utc\": \"2026-11-21T10:15:00Z\",\n"
        "  \"row\": [true, null],\n  \"empty\": {}\n}\n");
}

TEST_CASE("mistakes and failed writes make the writer fail") {
  int error = 0;
  written(
      64, [](text::JsonWriter& json) { json.begin_object(); }, &error);
  CHECK(error == EINVAL);
  written(
      64, [](text::JsonWriter& json) { json.begin_object(), json.number(1), json.end_object(); },
      &error);
  CHECK(error == EINVAL);
  written(
      64, [](text::JsonWriter& json) { json.begin_array(), json.key("k"), json.end_array(); },
      &error);
  CHECK(error == EINVAL);
  char buffer[8];
  text::JsonWriter json{OutsideHooks::in_hook(), -1, buffer, sizeof buffer};
  json.string("longer than the buffer");
  CHECK_FALSE(json.finish());
  CHECK(json.error() == EBADF);
}

TEST_CASE("sizes as people read them") {
  const std::pair<std::uint64_t, const char*> rows[] = {
      {0, "0 bytes"},
      {1, "1 byte"},
      {1023, "1023 bytes"},
      {1024, "1.0 KiB"},
      {1536, "1.5 KiB"},
      {412 << 20, "412.0 MiB"},
      {(1 << 20) - 1, "1.0 MiB"},
      {std::uint64_t{1} << 40, "1.0 TiB"},
      {~std::uint64_t{0}, "16.0 EiB"},
  };
  for (const auto& [bytes, words] : rows) {
    char text[32];
    CHECK(text::Text{text}.size(bytes).view() == words);
  }
}
