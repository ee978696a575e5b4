#include "tools/formats/telemetry/python_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "tools/base/number.h"

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

}  // namespace oomrec::tools::formats
