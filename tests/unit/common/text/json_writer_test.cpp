#include "common/text/json_writer.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "common/text/text.h"
#include "tools/base/json.h"
#include "tools/base/json_value.h"

using namespace oomrec;
using namespace oomrec::text;

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
