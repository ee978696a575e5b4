#include "tools/formats/telemetry/python_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "tools/base/text.h"

namespace oomrec::tools::formats {
namespace {

// Converts a value as Python prints it to JSON, token by token.
class PythonValue {
 public:
  explicit PythonValue(std::string_view text) : rest_(text) {}

  // Nothing: JSON has no such value.
  std::optional<std::string> json() {
    for (skip_blanks(); !rest_.empty(); skip_blanks())
      if (!token() || brackets_.size() > kDeepest || written_.size() > kMostTokens)
        return std::nullopt;
    std::string all;
    for (const std::string& one : written_) all += one;
    return all;
  }

 private:
  // A cell with more is kept as text: the parser rejects what is nested deeper.
  static constexpr std::size_t kDeepest = 64, kMostTokens = std::size_t{1} << 20;

  struct Bracket {
    char mark;
    std::size_t at;  // in written_
    bool has_comma;
  };

  void skip_blanks() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\n\r\v\f"), rest_.size()));
  }

  bool token() {
    const char mark = rest_[0];
    if (mark == '\'' || mark == '"') return string(mark);
    if (std::string_view{"([{}]),:"}.find(mark) == std::string_view::npos) return word();
    rest_.remove_prefix(1);
    if (mark == '(' || mark == '[' || mark == '{') {
      brackets_.push_back({mark, written_.size(), false});
      written_.emplace_back(1, mark == '(' ? '[' : mark);
    } else if (mark == ',' || mark == ':') {
      if (mark == ',' && !brackets_.empty()) brackets_.back().has_comma = true;
      written_.emplace_back(1, mark);
    } else {
      return close(mark);
    }
    return true;
  }

  bool close(char mark) {
    if (brackets_.empty()) return false;
    const Bracket bracket = brackets_.back();
    brackets_.pop_back();
    const char expected = bracket.mark == '(' ? ')' : bracket.mark == '[' ? ']' : '}';
    if (mark != expected) return false;
    const bool is_tuple = bracket.has_comma || written_.size() == bracket.at + 1;
    if (written_.back() == "," && written_.size() > bracket.at + 2) written_.pop_back();
    if (mark == ')' && !is_tuple)
      written_[bracket.at].clear();
    else
      written_.emplace_back(1, mark == ')' ? ']' : mark);
    return true;
  }

  bool word() {
    static constexpr std::pair<std::string_view, std::string_view> kWords[] = {
        {"None", "null"}, {"True", "true"},    {"False", "false"},
        {"nan", "NaN"},   {"inf", "Infinity"}, {"-inf", "-Infinity"}};
    for (const auto& [word, in_json] : kWords) {
      if (!rest_.starts_with(word)) continue;
      rest_.remove_prefix(word.size());
      add_word(in_json);
      return true;
    }
    const std::size_t length = number_length();
    if (length == 0) return false;
    const std::string_view number = rest_.substr(0, length);
    rest_.remove_prefix(length);
    add_word(number);
    return true;
  }

  // JSON needs quotes around a key.
  void add_word(std::string_view word) {
    skip_blanks();
    const bool is_key = rest_.starts_with(':');
    written_.push_back(is_key ? fmt::format("\"{}\"", word) : std::string{word});
  }

  // The length of the number at the start, by JSON's grammar; 0: none.
  std::size_t number_length() const {
    std::size_t at = rest_.starts_with('-');
    const auto digits = [&] {
      const std::size_t begin = at;
      while (at < rest_.size() && rest_[at] >= '0' && rest_[at] <= '9') ++at;
      return at - begin;
    };
    if (at < rest_.size() && rest_[at] == '0')
      ++at;
    else if (digits() == 0)
      return 0;
    const std::size_t before_point = at;
    if (at < rest_.size() && rest_[at] == '.' && (++at, digits() == 0)) return before_point;
    const std::size_t before_exponent = at;
    if (at < rest_.size() && (rest_[at] | 0x20) == 'e') {
      ++at;
      if (at < rest_.size() && (rest_[at] == '+' || rest_[at] == '-')) ++at;
      if (digits() == 0) return before_exponent;
    }
    return at;
  }

  bool string(char quote) {
    std::string json = "\"";
    for (rest_.remove_prefix(1); !rest_.empty() && rest_[0] != quote;) {
      const char c = rest_[0];
      if (c == '\n' || c == '\r' || c == '\0') return false;
      if (c == '\\') {
        if (!escape_into(json)) return false;
        continue;
      }
      const auto unit = static_cast<unsigned char>(c);
      json += c == '"' || unit < 0x20 ? unit_text(unit) : std::string(1, c);
      rest_.remove_prefix(1);
    }
    if (rest_.empty()) return false;
    rest_.remove_prefix(1);
    written_.push_back(json + '"');
    return true;
  }

  // Converts an escape that Python's repr() prints; false: another one.
  bool escape_into(std::string& json) {
    if (rest_.size() < 2) return false;
    const char kind = rest_[1];
    const std::size_t digits = kind == 'x' ? 2 : kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
    const std::string_view escape = rest_.substr(0, 2 + digits);
    if (digits != 0) {
      const auto point = parse_number<std::uint32_t>(escape.substr(2), 16);
      if (escape.size() != 2 + digits || !point || *point > 0x10ffff) return false;
      json += point_text(*point);
    } else if (kind == '\'') {
      json += kind;
    } else if (std::string_view{"\\\"nrt"}.find(kind) != std::string_view::npos) {
      json += escape;
    } else {
      return false;
    }
    rest_.remove_prefix(escape.size());
    return true;
  }

  static std::string unit_text(std::uint32_t unit) { return fmt::format("\\u{:04x}", unit); }

  static std::string point_text(std::uint32_t point) {
    if (point < 0x10000) return unit_text(point);
    point -= 0x10000;
    return unit_text(0xd800 + (point >> 10)) + unit_text(0xdc00 + (point & 0x3ff));
  }

  std::string_view rest_;
  std::vector<std::string> written_;
  std::vector<Bracket> brackets_;
};

}  // namespace

std::optional<std::string> json_of_python(std::string_view text) {
  return PythonValue{text}.json();
}

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
