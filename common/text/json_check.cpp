#include "common/text/json_check.h"

#include <cstring>
#include <string_view>

#include "common/text/text.h"

namespace oomrec::text {
namespace {

constexpr unsigned kMaxLevels = 128;
constexpr int kMaxMagnitude = 308;  // power of ten that fits a double

// Reads the text from front to back. After the first error `ok()` stays false.
class Check {
 public:
  explicit Check(std::span<char> text) noexcept : text_(text) {}

  bool whole_value() noexcept {
    blanks();
    do {
      value();
    } while (ok_ && between_values());
    blanks();
    return ok_ && at_ == text_.size();
  }
  bool ok() const noexcept { return ok_; }

 private:
  enum class Level : std::uint8_t { array, object };

  char peek() const noexcept { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(char c) noexcept {
    if (peek() != c || at_ == text_.size()) return false;
    ++at_;
    return true;
  }
  void need(bool condition) noexcept { ok_ = ok_ && condition; }
  void blanks() noexcept {
    while (peek() == ' ' || peek() == '\t' || peek() == '\n' || peek() == '\r') ++at_;
  }

  // Reads a value. A bracket opens a level; its first value, if any, follows.
  void value() noexcept {
    opened_ = false;
    if (take('{')) return open(Level::object);
    if (take('[')) return open(Level::array);
    if (take('"')) return string();
    if (peek() == '-' || digit()) return number();
    for (const std::string_view word : {"true", "false", "null"})
      if (std::string_view{text_.data() + at_, text_.size() - at_}.starts_with(word)) {
        at_ += word.size();
        return;
      }
    need(false);
  }

  void open(Level level) noexcept {
    need(depth_ < kMaxLevels);
    if (!ok_) return;
    levels_[depth_++] = level;
    opened_ = true;
  }

  // After a value: closes the levels that end here. Returns whether another value follows.
  bool between_values() noexcept {
    for (;;) {
      if (depth_ == 0) return false;
      const bool object = levels_[depth_ - 1] == Level::object;
      blanks();
      if (take(object ? '}' : ']')) {
        --depth_;
        opened_ = false;
        continue;
      }
      if (!opened_) {
        need(take(','));
        blanks();
      }
      opened_ = false;
      if (object) key();
      return ok_;
    }
  }

  void key() noexcept {
    need(take('"'));
    if (ok_) string();
    blanks();
    need(take(':'));
    blanks();
  }

  void string() noexcept {
    while (ok_) {
      const auto c = static_cast<unsigned char>(peek());
      if (at_ == text_.size() || c < 0x20) return need(false);
      if (take('"')) return;
      if (take('\\')) {
        escape();
        continue;
      }
      const std::size_t bytes = utf8_bytes({text_.data() + at_, text_.size() - at_});
      need(bytes != 0);
      at_ += bytes;
    }
  }

  void escape() noexcept {
    const char c = peek();
    if (c != 'u') {
      need(c != '\0' && std::strchr("\"\\/bfnrt", c) != nullptr);
      ++at_;
      return;
    }
    const std::size_t first = at_;
    const unsigned unit = unicode();
    if (unit < 0xd800 || unit > 0xdfff) return;
    const std::size_t second = at_;
    if (unit < 0xdc00 && take('\\') && peek() == 'u') {
      const unsigned low = unicode();
      if (low >= 0xdc00 && low <= 0xdfff) return;
    }
    at_ = second;  // the next escape is read on its own
    if (ok_) std::memcpy(&text_[first], "ufffd", 5);
  }

  unsigned unicode() noexcept {
    ++at_;
    unsigned unit = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const char c = peek();
      const bool letter = (c | 0x20) >= 'a' && (c | 0x20) <= 'f';
      need(digit() || letter);
      if (!ok_) return 0;
      unit = unit * 16 + static_cast<unsigned>(letter ? (c | 0x20) - 'a' + 10 : c - '0');
    }
    return unit;
  }

  bool digit() const noexcept { return peek() >= '0' && peek() <= '9'; }
  int digits() noexcept {
    const std::size_t from = at_;
    while (digit()) ++at_;
    need(at_ != from);
    return static_cast<int>(at_ - from);
  }

  void number() noexcept {
    take('-');
    const std::size_t from = at_;
    int magnitude = 1;
    if (!take('0')) magnitude = digits();
    if (take('.')) digits();
    const std::string_view mantissa{text_.data() + from, at_ - from};
    const bool zero = mantissa.find_first_of("123456789") == mantissa.npos;
    if (peek() == 'e' || peek() == 'E') {
      ++at_;
      const bool negative = take('-');
      if (!negative) take('+');
      int exponent = 0;
      for (need(digit()); digit(); ++at_)
        exponent = exponent > kMaxMagnitude ? exponent : exponent * 10 + (peek() - '0');
      if (!negative) magnitude += exponent;
    }
    need(zero || magnitude <= kMaxMagnitude);
  }

  std::span<char> text_;
  std::size_t at_ = 0;
  bool ok_ = true;
  bool opened_ = false;  // the innermost level has had no value yet
  unsigned depth_ = 0;
  Level levels_[kMaxLevels] = {};
};

}  // namespace

JsonKind check_json(std::span<char> text) noexcept {
  Check check{text};
  if (!check.whole_value()) return JsonKind::none;
  const auto first = std::string_view{text.data(), text.size()}.find_first_not_of(" \t\r\n");
  return text[first] == '{' ? JsonKind::object : JsonKind::other;
}

}  // namespace oomrec::text
