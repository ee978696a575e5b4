#include "tools/base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <numeric>

#include "common/session/secrets.h"
#include "common/text/text.h"

namespace oomrec::tools {
namespace {

// Calls visit(character, code point) for each character; for an invalid byte `character` is empty.
template <class Visit>
void for_characters(std::string_view text, Visit visit) {
  while (!text.empty()) {
    const std::size_t length = text::utf8_bytes(text);
    visit(text.substr(0, length),
          length != 0 ? text::code_point(text.substr(0, length)) : char32_t{0});
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
}

// Whether it controls the terminal, breaks the line, or reverses the following text.
bool is_control(char32_t point) {
  return point < 0x20 || (point >= 0x7f && point < 0xa0) || (point >= 0x2028 && point <= 0x202e) ||
         (point >= 0x2066 && point <= 0x2069);
}

bool starts_character(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; }

// Number of edits (insert, delete, replace, swap neighbours) from one word to the other.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> above(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(above.begin(), above.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

}  // namespace

std::string size_text(std::uint64_t bytes) {
  static constexpr std::array kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  // 1023.95 would print as 1024.0 of the smaller unit.
  while (value >= 1023.95 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string count_text(std::uint64_t count) {
  std::string digits = std::to_string(count);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3) {
    digits.insert(static_cast<std::size_t>(at), ",");
  }
  return digits;
}

double share_of(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::string percent_text(double share) { return fmt::format("{:.1f} %", share * 100); }

std::string time_text(std::uint64_t realtime_ns) {
  const auto seconds = static_cast<std::time_t>(realtime_ns / 1'000'000'000);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  const std::size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text.data(), length};
}

std::uint64_t time_of_text(const std::string& text) {
  std::tm parts{};
  const char* const end = strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  if (end == nullptr || *end != '\0') return 0;
  return static_cast<std::uint64_t>(timegm(&parts)) * 1'000'000'000;
}

std::string plural(std::uint64_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count_text(count), count == 1 ? one : many);
}

std::size_t utf8_prefix(std::string_view text) {
  std::size_t valid = 0;
  while (valid < text.size()) {
    const std::size_t length = text::utf8_bytes(text.substr(valid));
    if (length == 0) break;
    valid += length;
  }
  return valid;
}

bool is_cut_character(std::string_view text) {
  if (text.empty() || static_cast<unsigned char>(text[0]) < 0x80) return false;
  // The continuation bytes of a character are in this range, whatever its first byte is.
  for (const char last : {'\x80', '\xbf'})
    for (std::size_t missing = 1; missing < 4; ++missing) {
      const std::string whole = std::string{text} + std::string(missing, last);
      if (text::utf8_bytes(whole) == whole.size()) return true;
    }
  return false;
}

std::string printable(std::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  for_characters(text, [&](std::string_view character, char32_t point) {
    if (character.empty())
      safe += "\xef\xbf\xbd";
    else if (is_control(point))
      safe += '?';
    else
      safe += character;
  });
  return safe;
}

std::string printable_prefix(std::string_view text, std::size_t most_bytes) {
  const std::string safe = printable(text);
  return safe.substr(0, utf8_prefix(std::string_view{safe}.substr(0, most_bytes)));
}

std::string with_controls_escaped(std::string json) {
  const auto is_escaped = [](char32_t point) { return is_control(point) && point != '\n'; };
  const auto special = std::ranges::find_if(json, [&](char byte) {
    const auto value = static_cast<unsigned char>(byte);
    return value >= 0x80 || is_escaped(value);
  });
  if (special == json.end()) return json;  // nearly always: megabytes of names and numbers
  std::string safe{json.begin(), special};
  safe.reserve(json.size());
  for_characters({special, json.end()}, [&](std::string_view character, char32_t point) {
    if (is_escaped(point))
      safe += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(point));
    else
      safe += character;
  });
  return safe;
}

std::string single_quoted(std::string_view text) {
  std::string safe = "'";
  for (const char c : text) {
    if (c == '\'')
      safe += "'\\''";
    else
      safe += c;
  }
  return safe + "'";
}

std::string shell_word(std::string_view text) {
  constexpr std::string_view kSafe =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./@%+=:,-";
  const bool is_safe = !text.empty() && text.find_first_not_of(kSafe) == text.npos;
  return is_safe ? std::string{text} : single_quoted(text);
}

std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, starts_character));
}

std::string clip(std::string_view text, std::size_t columns) {
  if (width(text) <= columns) return std::string{text};
  std::size_t end = 0;
  for (std::size_t left = columns - 1; end < text.size(); ++end) {
    if (starts_character(text[end]) && left-- == 0) break;
  }
  return std::string{text.substr(0, end)} + "…";
}

std::string clip_start(std::string_view text, std::size_t columns) {
  const std::size_t total = width(text);
  if (total <= columns) return std::string{text};
  std::size_t begin = 0;
  for (std::size_t skip = total - columns + 2; begin < text.size(); ++begin) {
    if (starts_character(text[begin]) && --skip == 0) break;
  }
  return "…" + std::string{text.substr(begin)};
}

std::string wrap(std::string_view text, std::size_t columns, std::size_t indent) {
  std::string wrapped;
  std::size_t column = indent;
  for (const std::string_view word : split(text, ' ')) {
    if (column != indent && column + 1 + width(word) > columns) {
      wrapped += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (!wrapped.empty()) {
      wrapped += ' ';
      ++column;
    }
    wrapped += word;
    column += width(word);
  }
  return wrapped;
}

std::string_view nearest(std::string_view typed, const std::vector<std::string_view>& words) {
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(1, typed.size() / 3) + 1;
  for (const std::string_view word : words) {
    const bool is_prefix = typed.size() >= 2 && word.substr(0, typed.size()) == typed;
    const std::size_t edits = is_prefix ? 1 : distance(typed, word);
    if (edits < best_distance) {
      best = word;
      best_distance = edits;
    }
  }
  return best;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::string mask_secrets(std::string arguments) {
  arguments.resize(session::mask_secrets(arguments.data(), arguments.size()));
  return arguments;
}

std::vector<std::string> masked_words(const std::vector<std::string>& words) {
  std::string arguments;
  for (const std::string& word : words) arguments += word + '\0';
  arguments = mask_secrets(std::move(arguments));
  if (!arguments.empty()) arguments.pop_back();
  std::vector<std::string> masked;
  if (words.empty()) return masked;
  for (const std::string_view word : split(arguments, '\0')) masked.emplace_back(word);
  return masked;
}

}  // namespace oomrec::tools

namespace oomrec::tools {
namespace {

constexpr std::uint64_t kMinute = 60, kHour = 60 * kMinute, kDay = 24 * kHour;
constexpr double kLongest = 3652.5 * kDay;

// A duration in two units. The second is left out if it is zero.
std::string in_two_units(std::uint64_t seconds, std::uint64_t large, std::string_view word,
                         std::uint64_t small, std::string_view small_word) {
  const std::string text = fmt::format("{} {}", count_text(seconds / large), word);
  const std::uint64_t rest = seconds % large / small;
  return rest == 0 ? text : fmt::format("{} {} {}", text, rest, small_word);
}

}  // namespace

std::string duration_text(double seconds) {
  if (seconds < 59.95) return fmt::format("{:.1f} s", seconds);
  if (seconds > kLongest) return "more than 10 years";
  const auto whole = static_cast<std::uint64_t>(std::llround(seconds));
  if (whole < kHour) return in_two_units(whole, kMinute, "min", 1, "s");
  if (whole < kDay) return in_two_units(whole, kHour, "h", kMinute, "min");
  return in_two_units(whole, kDay, whole < 2 * kDay ? "day" : "days", kHour, "h");
}

}  // namespace oomrec::tools
