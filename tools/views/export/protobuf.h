// Writes protobuf messages without a schema. Zero and empty fields are left out, as in proto3,
// except by the functions named *_even_*.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace oomrec::tools::views {

class Message {
 public:
  Message& number(unsigned field, std::uint64_t value) {
    if (value != 0) number_even_zero(field, value);
    return *this;
  }
  // For proto2 fields, which distinguish zero from absent.
  Message& number_even_zero(unsigned field, std::uint64_t value) {
    varint(field << 3);
    varint(value);
    return *this;
  }
  Message& text(unsigned field, std::string_view value) {
    return value.empty() ? *this : text_even_empty(field, value);
  }
  Message& text_even_empty(unsigned field, std::string_view value) {
    varint(field << 3 | kLengthDelimited);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  Message& message(unsigned field, const Message& value) {
    return text_even_empty(field, value.bytes_);
  }
  Message& packed(unsigned field, const std::vector<std::uint64_t>& values) {
    Message list;
    for (const std::uint64_t value : values) list.varint(value);
    return message(field, list);
  }

  const std::string& bytes() const { return bytes_; }

 private:
  static constexpr unsigned kLengthDelimited = 2;

  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

}  // namespace oomrec::tools::views
