#include "tools/formats/telemetry/lenient_json.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "tools/base/number.h"

namespace oomrec::tools::formats {
namespace {

// NaN and the infinities are replaced by these strings before parsing, and restored afterwards.
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

// The code unit of an escape \uXXXX at the start of `text`.
std::optional<std::uint32_t> escaped_unit(std::string_view text) {
  if (text.size() < 6 || !text.starts_with("\\u")) return std::nullopt;
  return parse_number<std::uint32_t>(text.substr(2, 4), 16);
}

// The length of the escape at the start of `text`, and its replacement in valid JSON.
std::pair<std::size_t, std::string_view> escape(std::string_view text) {
  const auto unit = escaped_unit(text);
  if (!unit) return {2, text.substr(0, 2)};
  if (*unit < 0xd800 || *unit > 0xdfff) return {6, text.substr(0, 6)};
  const auto low = *unit < 0xdc00 ? escaped_unit(text.substr(6)) : std::nullopt;
  if (low && *low >= 0xdc00 && *low <= 0xdfff) return {12, text.substr(0, 12)};
  return {6, "\\ufffd"};
}

// The constant at the start of `text`; nullptr: none, or it is in the position of a key.
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

void restore_constants(Json& value) {
  if (value.is_array()) {
    for (Json& each : value) restore_constants(each);
  } else if (value.is_object()) {
    for (auto& [key, each] : value.items()) restore_constants(each);
  } else if (value.is_string()) {
    const auto& text = value.text();
    if (text.empty() || text[0] != '\0') return;
    for (const Constant& constant : kConstants)
      if (std::string_view{text}.substr(1) == constant.word) {
        value = constant.value;
        return;
      }
  }
}

}  // namespace

Json parsed_json(std::string_view text, JsonBudget& budget) {
  // The parser would skip a byte order mark, and stop at a NUL.
  if (text.starts_with("\xef\xbb\xbf") || text.find('\0') != text.npos) return Json::discarded();
  try {
    if (!needs_cleaning(text)) return parse_json(text, budget);
    Json value = parse_json(cleaned(text), budget);
    restore_constants(value);
    return value;
  } catch (const std::length_error&) {
    return Json::discarded();  // nested deeper than any record
  }
}

}  // namespace oomrec::tools::formats
