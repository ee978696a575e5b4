#include "common/text/json_writer.h"

#include <cerrno>
#include <cstring>

#include "common/system/files.h"
#include "common/text/text.h"

namespace oomrec::text {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

}  // namespace

void JsonWriter::misuse() noexcept {
  if (error_ == 0) error_ = EINVAL;
}

void JsonWriter::flush() noexcept {
  if (error_ == 0) error_ = -system::write_all(fd_, buffer_, used_);
  flushed_ += used_;
  used_ = 0;
}

void JsonWriter::put(std::string_view text) noexcept {
  while (!text.empty()) {
    if (used_ == capacity_) flush();
    const std::size_t free_bytes = capacity_ - used_;
    const std::size_t taken = text.size() < free_bytes ? text.size() : free_bytes;
    std::memcpy(buffer_ + used_, text.data(), taken);
    used_ += taken;
    text.remove_prefix(taken);
  }
}

void JsonWriter::put(char c) noexcept { put(std::string_view{&c, 1}); }

void JsonWriter::new_line() noexcept {
  constexpr std::string_view kSpaces = "                                                ";
  static_assert(kSpaces.size() == 2 * kMaxDepth);
  put('\n');
  put(kSpaces.substr(0, std::size_t{2} * (depth_ + indent_)));
}

void JsonWriter::separate(Level& level) noexcept {
  if (!level.empty) put(level.one_line ? ", " : ",");
  if (!level.one_line) new_line();
  level.empty = false;
}

void JsonWriter::before_value() noexcept {
  if (depth_ == 0) {
    if (complete_) misuse();
    return;
  }
  Level& level = levels_[depth_ - 1];
  if (level.array) {
    separate(level);
  } else if (!after_key_) {
    misuse();
  }
  after_key_ = false;
}

void JsonWriter::begin(char bracket, JsonLayout layout) noexcept {
  before_value();
  put(bracket);
  if (depth_ == kMaxDepth) return misuse();
  const bool inside_line = depth_ != 0 && levels_[depth_ - 1].one_line;
  levels_[depth_++] = {bracket == '[', layout == JsonLayout::one_line || inside_line, true};
}

void JsonWriter::end(char bracket) noexcept {
  if (depth_ == 0 || after_key_ || levels_[depth_ - 1].array != (bracket == ']')) return misuse();
  const Level level = levels_[--depth_];
  if (!level.empty && !level.one_line) new_line();
  put(bracket);
  complete_ = depth_ == 0;
}

JsonWriter& JsonWriter::key(std::string_view name) noexcept {
  if (depth_ == 0 || levels_[depth_ - 1].array || after_key_) {
    misuse();
    return *this;
  }
  separate(levels_[depth_ - 1]);
  quoted(name);
  put(": ");
  after_key_ = true;
  return *this;
}

void JsonWriter::token(std::string_view text) noexcept {
  before_value();
  put(text);
  complete_ = depth_ == 0;
}

void JsonWriter::string(std::string_view text) noexcept {
  before_value();
  quoted(text);
  complete_ = depth_ == 0;
}

void JsonWriter::quoted(std::string_view text) noexcept {
  put('"');
  while (!text.empty()) {
    const auto c = static_cast<unsigned char>(text.front());
    const std::size_t bytes = utf8_bytes(text);
    if (bytes == 0) {
      put(kReplacement);
    } else if (c == '"' || c == '\\') {
      put('\\');
      put(text.front());
    } else if (c == '\n') {
      put("\\n");
    } else if (c == '\t') {
      put("\\t");
    } else if (c < 0x20 || c == 0x7f) {
      put("\\u00");
      put("0123456789abcdef"[c >> 4]);
      put("0123456789abcdef"[c & 15]);
    } else {
      put(text.substr(0, bytes));
    }
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  put('"');
}

void JsonWriter::number(std::uint64_t value) noexcept {
  char digits[24];
  token(Text{digits}.number(value).view());
}

void JsonWriter::signed_number(std::int64_t value) noexcept {
  char digits[24];
  token(Text{digits}.signed_number(value).view());
}

void JsonWriter::fraction(std::uint64_t value, unsigned decimals) noexcept {
  std::uint64_t unit = 1;
  for (unsigned i = 0; i < decimals; ++i) unit *= 10;
  char digits[32];
  token(Text{digits}.number(value / unit).add('.').number(value % unit, decimals).view());
}

void JsonWriter::utc(std::uint64_t realtime_ns) noexcept {
  char text[32];
  string(Text{text}.utc(realtime_ns).view());
}

bool JsonWriter::finish() noexcept {
  if (depth_ != 0 || !complete_) misuse();
  if (indent_ == 0) put('\n');
  flush();
  return ok();
}

}  // namespace oomrec::text
