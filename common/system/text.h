// Text without allocation: builds it in the caller's buffer, and reads numbers from it.
//
// Always NUL-terminated. What does not fit is dropped, and truncated() says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace oomrec::system {

class Text {
 public:
  Text(char* buffer, std::size_t capacity) noexcept : buffer_(buffer), capacity_(capacity) {
    buffer_[0] = '\0';
  }
  template <std::size_t N>
  explicit Text(char (&buffer)[N]) noexcept : Text(buffer, N) {}

  Text& operator<<(std::string_view text) noexcept {
    std::size_t bytes = text.size();
    if (bytes > capacity_ - 1 - used_) {
      bytes = capacity_ - 1 - used_;
      truncated_ = true;
    }
    if (bytes != 0) std::memcpy(buffer_ + used_, text.data(), bytes);
    used_ += bytes;
    buffer_[used_] = '\0';
    return *this;
  }
  Text& operator<<(const char* text) noexcept { return *this << std::string_view{text}; }
  Text& operator<<(char character) noexcept { return *this << std::string_view{&character, 1}; }

  Text& number(std::uint64_t value) noexcept { return digits(value, 10, 1); }
  Text& signed_number(std::int64_t value) noexcept {
    if (value < 0) *this << '-';
    return number(value < 0 ? ~static_cast<std::uint64_t>(value) + 1
                            : static_cast<std::uint64_t>(value));
  }
  // At least `width` digits (at most 20), padded with zeros.
  Text& padded(std::uint64_t value, unsigned width) noexcept { return digits(value, 10, width); }
  Text& hex(std::uint64_t value, unsigned width = 1) noexcept { return digits(value, 16, width); }

  void clear() noexcept {
    used_ = 0;
    truncated_ = false;
    buffer_[0] = '\0';
  }
  const char* c_str() const noexcept { return buffer_; }
  std::size_t size() const noexcept { return used_; }
  std::string_view view() const noexcept { return {buffer_, used_}; }
  bool truncated() const noexcept { return truncated_; }

 private:
  Text& digits(std::uint64_t value, unsigned base, unsigned width) noexcept {
    char reversed[20];
    unsigned count = 0;
    do {
      reversed[count++] = "0123456789abcdef"[value % base];
      value /= base;
    } while (value != 0);
    while (count < width && count < sizeof(reversed)) reversed[count++] = '0';
    while (count != 0) *this << reversed[--count];
    return *this;
  }

  char* buffer_;
  std::size_t capacity_;
  std::size_t used_ = 0;
  bool truncated_ = false;
};

// The decimal number at the start of `text`, after blanks; 0 if there is none. `rest`, if given,
// receives what follows.
inline std::uint64_t number_in(std::string_view text, std::string_view* rest = nullptr) noexcept {
  std::size_t at = 0;
  while (at < text.size() && (text[at] == ' ' || text[at] == '\t')) ++at;
  std::uint64_t value = 0;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
    value = value * 10 + static_cast<std::uint64_t>(text[at] - '0');
  }
  if (rest != nullptr) *rest = text.substr(at);
  return value;
}

// The rest of the first line that starts with `name`: a field of /proc/…/status, meminfo or
// memory.stat. Empty if there is no such line.
inline std::string_view field(std::string_view text, std::string_view name) noexcept {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (line.substr(0, name.size()) == name) return line.substr(name.size());
    if (line.size() == text.size()) break;
    text.remove_prefix(line.size() + 1);
  }
  return {};
}

// Field `number` of the text of /proc/PID/stat, from 3 on: those behind the process' name, which
// may contain any characters. Empty: there is none.
inline std::string_view stat_field(std::string_view stat, unsigned number) noexcept {
  const std::size_t name_end = stat.rfind(')');
  if (name_end == stat.npos) return {};
  stat.remove_prefix(name_end + 1);
  for (unsigned at = 3;; ++at) {
    const std::size_t start = stat.find_first_not_of(" \n");
    if (start == stat.npos) return {};
    stat.remove_prefix(start);
    const std::string_view word = stat.substr(0, stat.find_first_of(" \n"));
    if (at == number) return word;
    stat.remove_prefix(word.size());
  }
}

}  // namespace oomrec::system
