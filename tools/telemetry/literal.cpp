#include "tools/telemetry/literal.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "tools/telemetry/fields.h"

namespace oomrec::tools {
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

bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

std::optional<std::uint32_t> hex(std::string_view text, std::size_t digits) {
  if (text.size() < digits) return std::nullopt;
  std::uint32_t value = 0;
  for (const char c : text.substr(0, digits)) {
    if (!is_hex(c)) return std::nullopt;
    const int digit = c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
    value = value << 4 | static_cast<std::uint32_t>(digit);
  }
  return value;
}

// Of an escape \uXXXX at the start of `text`.
std::optional<std::uint32_t> escaped_unit(std::string_view text) {
  return text.starts_with("\\u") ? hex(text.substr(2), 4) : std::nullopt;
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

const Constant* constant_at(std::string_view text) {
  for (const Constant& constant : kConstants)
    if (text.starts_with(constant.word)) return &constant;
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

// More brackets are open somewhere than in any record. The parser is no recursion, but what it
// makes is taken apart by one.
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

// Reads a value as Python prints it, token by token, and writes JSON.
class PythonValue {
 public:
  explicit PythonValue(std::string_view text) : rest_(text) {}

  // Nothing where JSON has no such value.
  std::optional<std::string> json() {
    for (skip_blanks(); !rest_.empty(); skip_blanks())
      if (!token()) return std::nullopt;
    std::string all;
    for (const std::string& one : written_) all += one;
    return all;
  }

 private:
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
    const char wanted = bracket.mark == '(' ? ')' : bracket.mark == '[' ? ']' : '}';
    if (mark != wanted) return false;
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

  // A key is a string in JSON.
  void add_word(std::string_view word) {
    skip_blanks();
    const bool is_key = rest_.starts_with(':');
    written_.push_back(is_key ? fmt::format("\"{}\"", word) : std::string{word});
  }

  // Of the number, by JSON's grammar, at the start; 0: there is none.
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
      json += c == '"' || static_cast<unsigned char>(c) < 0x20
                  ? unit_text(static_cast<unsigned char>(c))
                  : std::string(1, c);
      rest_.remove_prefix(1);
    }
    if (rest_.empty()) return false;
    rest_.remove_prefix(1);
    written_.push_back(json + '"');
    return true;
  }

  static std::string unit_text(std::uint32_t unit) { return fmt::format("\\u{:04x}", unit); }

  static std::string point_text(std::uint32_t point) {
    if (point < 0x10000) return unit_text(point);
    point -= 0x10000;
    return unit_text(0xd800 + (point >> 10)) + unit_text(0xdc00 + (point & 0x3ff));
  }

  // Those that Python prints.
  bool escape_into(std::string& json) {
    if (rest_.size() < 2) return false;
    const char kind = rest_[1];
    const std::size_t digits = kind == 'x' ? 2 : kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
    if (digits != 0) {
      const auto point = hex(rest_.substr(2), digits);
      if (!point || *point > 0x10ffff) return false;
      json += point_text(*point);
    } else if (kind == '\'') {
      json += kind;
    } else if (kind == '\\' || kind == '"' || kind == 'n' || kind == 'r' || kind == 't') {
      json += rest_.substr(0, 2);
    } else {
      return false;
    }
    rest_.remove_prefix(2 + digits);
    return true;
  }

  std::string_view rest_;
  std::vector<std::string> written_;
  std::vector<Bracket> brackets_;
};

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

Json parsed_literal(const std::string& text) {
  if (Json value = parsed_json(text); !value.is_discarded()) return value;
  if (const auto json = PythonValue{text}.json())
    if (Json value = parsed_json(*json); !value.is_discarded()) return value;
  return text;
}

}  // namespace oomrec::tools
