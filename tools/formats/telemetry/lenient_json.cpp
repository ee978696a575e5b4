#include "tools/formats/telemetry/lenient_json.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

namespace oomrec::tools::formats {
namespace {

// NaN and the infinities stand in the text that is parsed as these strings, and are put back then.
struct Constant {
  std::string_view word, in_json;
  double value;
};
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr Constant kConstants[] = {
    {"NaN", R"("\u0000NaN")", std::numeric_limits<double>::quiet_NaN()},
    {"Infinity", R"("\u0000Infinity")", kInfinity},
    {"-Infinity", R"("\u0000-Infinity")", -kInfinity},
};

// Of an escape \uXXXX at the start of `text`.
std::optional<std::uint32_t> escaped_unit(std::string_view text) {
  std::uint32_t unit = 0;
  if (text.size() < 6 || !text.starts_with("\\u")) return std::nullopt;
  const auto read = std::from_chars(text.data() + 2, text.data() + 6, unit, 16);
  return read.ptr == text.data() + 6 ? std::optional{unit} : std::nullopt;
}

// How far the escape at the start of `text` goes, and what stands for it in JSON.
std::pair<std::size_t, std::string_view> escape(std::string_view text) {
  const auto unit = escaped_unit(text);
  if (!unit) return {2, text.substr(0, 2)};
  if (*unit < 0xd800 || *unit > 0xdfff) return {6, text.substr(0, 6)};
  const auto low = *unit < 0xdc00 ? escaped_unit(text.substr(6)) : std::nullopt;
  if (low && *low >= 0xdc00 && *low <= 0xdfff) return {12, text.substr(0, 12)};
  return {6, "\\ufffd"};
}

// The constant that `text` starts with. Null: none, or it stands where a key must.
const Constant* constant_at(std::string_view text) {
  for (const Constant& constant : kConstants) {
    if (!text.starts_with(constant.word)) continue;
    const std::size_t next = text.find_first_not_of(" \t\r\n", constant.word.size());
    return next == text.npos || text[next] != ':' ? &constant : nullptr;
  }
  return nullptr;
}

bool needs_cleaning(std::string_view text) {
  for (const std::string_view sign : {"NaN", "Infinity", "\\ud", "\\uD"})
    if (text.find(sign) != text.npos) return true;
  return false;
}

std::string cleaned(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  bool in_string = false;
  while (!text.empty()) {
    std::size_t length = 1;
    std::string_view written = text.substr(0, 1);
    if (in_string && text[0] == '\\') {
      std::tie(length, written) = escape(text);
    } else if (text[0] == '"') {
      in_string = !in_string;
    } else if (const Constant* const constant = in_string ? nullptr : constant_at(text)) {
      length = constant->word.size();
      written = constant->in_json;
    }
    clean += written;
    text.remove_prefix(std::min(length, text.size()));
  }
  return clean;
}

void put_constants_back(Json& value) {
  if (value.is_structured()) {
    for (Json& each : value) put_constants_back(each);
  } else if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    if (text.empty() || text[0] != '\0') return;
    for (const Constant& constant : kConstants)
      if (std::string_view{text}.substr(1) == constant.word) {
        value = constant.value;
        return;
      }
  }
}

// Limits the recursion of Json's destructor; the parser itself does not recurse.
bool is_too_deep(std::string_view text) {
  constexpr std::size_t kDeepest = 64;
  std::size_t open = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string && c == '\\')
      ++i;
    else if (c == '"')
      in_string = !in_string;
    else if (!in_string && (c == '[' || c == '{') && ++open > kDeepest)
      return true;
    else if (!in_string && (c == ']' || c == '}') && open > 0)
      --open;
  }
  return false;
}

}  // namespace

Json parsed_json(std::string_view text) {
  // The parser would skip a byte order mark, and end at a zero byte.
  if (text.starts_with("\xef\xbb\xbf") || text.find('\0') != text.npos || is_too_deep(text))
    return Json(Json::value_t::discarded);
  if (!needs_cleaning(text)) return Json::parse(text, nullptr, false);
  Json value = Json::parse(cleaned(text), nullptr, false);
  put_constants_back(value);
  return value;
}

}  // namespace oomrec::tools::formats
