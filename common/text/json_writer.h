// Writes one JSON document to a descriptor, through a buffer it is given.
//
// Promise: the bytes are valid JSON and valid UTF-8 whatever strings are put in (what is not UTF-8
// becomes U+FFFD), or ok() is false: a write error and a mistake in nesting are remembered, and
// nothing more is written. Allocates nothing; for hooks and for the emergency writer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/system/hook_scope.h"

namespace oomrec::text {

class JsonWriter {
 public:
  // `indent`: of the value in a document that is there already; then no newline follows it.
  JsonWriter(InHook, int fd, char* buffer, std::size_t capacity, unsigned indent = 0) noexcept
      : fd_(fd), buffer_(buffer), capacity_(capacity), indent_(indent) {}

  // On lines of their own and indented, or, where `row` is set, all on one line.
  void begin_object(bool row = false) noexcept { begin('{', row); }
  void begin_array(bool row = false) noexcept { begin('[', row); }
  void end_object() noexcept { end('}'); }
  void end_array() noexcept { end(']'); }

  // The next value's key; inside objects, before every value.
  JsonWriter& key(std::string_view name) noexcept;

  void string(std::string_view text) noexcept;
  void string_or_null(std::string_view text) noexcept { text.empty() ? null() : string(text); }
  void number(std::uint64_t value) noexcept;
  void signed_number(std::int64_t value) noexcept;
  // value / 10^decimals, in all its digits: "1.050" for 1050 and 3.
  void fraction(std::uint64_t value, unsigned decimals) noexcept;
  void boolean(bool value) noexcept { token(value ? "true" : "false"); }
  void null() noexcept { token("null"); }
  // A value that is JSON already (json_check.h).
  void raw(std::string_view value) noexcept { token(value); }
  void utc(std::uint64_t realtime_ns) noexcept;  // "2026-11-21T10:15:30Z"

  // Writes what is buffered, and a document's last newline. True when the document is whole and
  // written.
  bool finish() noexcept;

  bool ok() const noexcept { return error_ == 0; }
  int error() const noexcept { return error_; }  // errno of the first failed write; EINVAL: nesting
  std::uint64_t bytes() const noexcept { return flushed_ + used_; }

 private:
  static constexpr unsigned kMaxDepth = 24;
  struct Level {
    bool array, row, empty;
  };

  void begin(char bracket, bool row) noexcept;
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
