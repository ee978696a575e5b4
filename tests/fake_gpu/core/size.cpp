#include "tests/fake_gpu/core/size.h"

#include <cstdlib>
#include <cstring>

namespace fake_gpu {

std::size_t parse_size(const char*& text) {
  char* end = nullptr;
  std::size_t bytes = std::strtoull(text, &end, 10);
  static const char kUnits[] = "KMG";
  if (const char* const unit = *end == '\0' ? nullptr : std::strchr(kUnits, *end)) {
    bytes <<= 10 * (unit - kUnits + 1);
    ++end;
  }
  text = end;
  return bytes;
}

std::size_t size_from(const char* variable, std::size_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr || *text == '\0' ? otherwise : parse_size(text);
}

}  // namespace fake_gpu
