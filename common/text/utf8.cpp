#include "common/text/utf8.h"

namespace oomrec::text {

std::size_t utf8_bytes(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) -> unsigned {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xc0U) == 0x80U; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return follows(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    const unsigned low = first == 0xe0 ? 0xa0 : 0x80;
    const unsigned high = first == 0xed ? 0x9f : 0xbf;
    return byte(1) >= low && byte(1) <= high && follows(2) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const unsigned low = first == 0xf0 ? 0x90 : 0x80;
    const unsigned high = first == 0xf4 ? 0x8f : 0xbf;
    return byte(1) >= low && byte(1) <= high && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

char32_t code_point(std::string_view sequence) noexcept {
  const auto first = static_cast<unsigned char>(sequence[0]);
  if (sequence.size() == 1) return first;
  char32_t point = first & (0xffU >> (sequence.size() + 1));
  for (const char byte : sequence.substr(1))
    point = point << 6 | (static_cast<unsigned char>(byte) & 0x3fU);
  return point;
}

std::string_view utf8_of(char32_t point, char (&bytes)[4]) noexcept {
  const bool is_control = point < 0x20 || (point >= 0x7f && point < 0xa0);
  if (is_control || (point >= 0xd800 && point < 0xe000) || point > 0x10'ffff) return {};
  if (point < 0x80) {
    bytes[0] = static_cast<char>(point);
    return {bytes, 1};
  }
  const std::size_t count = point < 0x800 ? 2 : point < 0x1'0000 ? 3 : 4;
  for (std::size_t i = count - 1; i != 0; --i, point >>= 6)
    bytes[i] = static_cast<char>(0x80 | (point & 0x3f));
  bytes[0] = static_cast<char>((0xf00 >> count & 0xff) | point);
  return {bytes, count};
}

}  // namespace oomrec::text
