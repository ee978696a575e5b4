// Writes one JSON document to a descriptor through the caller's buffer.
//
// The output is valid JSON and valid UTF-8 whatever the strings contain; bytes that are not UTF-8
// become U+FFFD. After a write error or a nesting mistake ok() is false and nothing more is
// written. Allocates nothing; for hooks and for the emergency writer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/system/hook_scope.h"

namespace oomrec::text {

// How an object or array is written: one member per line, or all on one line.
enum class JsonLayout : std::uint8_t { lines, one_line };

class JsonWriter {
 public:
  // `indent`: the level of this value inside an existing document; then no newline follows it.
  JsonWriter(InHook, int fd, char* buffer, std::size_t capacity, unsigned indent = 0) noexcept
      : fd_(fd), buffer_(buffer), capacity_(capacity), indent_(indent) {}

  // `one_line` also applies to everything inside.
  void begin_object(JsonLayout layout = JsonLayout::lines) noexcept { begin('{', layout); }
  void begin_array(JsonLayout layout = JsonLayout::lines) noexcept { begin('[', layout); }
  void end_object() noexcept { end('}'); }
  void end_array() noexcept { end(']'); }

  // The next value's key: required before each value inside an object.
  JsonWriter& key(std::string_view name) noexcept;

  void string(std::string_view text) noexcept;
  void string_or_null(std::string_view text) noexcept { text.empty() ? null() : string(text); }
  void number(std::uint64_t value) noexcept;
  void signed_number(std::int64_t value) noexcept;
  // value / 10^decimals with all digits: "1.050" for 1050 and 3.
  void fraction(std::uint64_t value, unsigned decimals) noexcept;
  void boolean(bool value) noexcept { token(value ? "true" : "false"); }
  void null() noexcept { token("null"); }
  // A value that is already JSON (json_check.h).
  void raw(std::string_view value) noexcept { token(value); }
  void utc(std::uint64_t realtime_ns) noexcept;  // "2026-11-21T10:15:30Z"

  // Writes what is buffered, and the document's final newline. True: the document is complete and
  // written.
  bool finish() noexcept;

  bool ok() const noexcept { return error_ == 0; }
  int error() const noexcept { return error_; }  // errno of the first failed write; EINVAL: nesting
  std::uint64_t bytes() const noexcept { return flushed_ + used_; }

 private:
  static constexpr unsigned kMaxDepth = 24;
  struct Level {
    bool array, one_line, empty;
  };

  void begin(char bracket, JsonLayout layout) noexcept;
  void end(char bracket) noexcept;
  void before_value() noexcept;
  void token(std::string_view text) noexcept;
  void quoted(std::string_view text) noexcept;
  void separate(Level& level) noexcept;
  void new_line() noexcept;
  void put(std::string_view text) noexcept;
  void put(char c) noexcept;
  void flush() noexcept;
  void misuse() noexcept;

  int fd_;
  char* buffer_;
  std::size_t capacity_;
  unsigned indent_;  // levels
  std::size_t used_ = 0;
  std::uint64_t flushed_ = 0;
  int error_ = 0;
  unsigned depth_ = 0;
  bool after_key_ = false;
  bool complete_ = false;
  Level levels_[kMaxDepth] = {};
};

}  // namespace oomrec::text
