#include "common/names/names.h"

#include "common/names/cxx_name.h"
#include "common/names/cython_name.h"
#include "common/names/rust_name.h"

namespace oomrec::names {

std::string_view cython_or_rust_name(std::string_view symbol, std::span<char> buffer) noexcept {
  text::Text out{buffer.data(), buffer.size()};
  for (const auto add : {add_cython_name, add_rust_v0_name, add_rust_legacy_name}) {
    if (add(out, symbol)) return out.view();
    out.clear();
  }
  return {};
}

std::string_view short_name(std::string_view symbol, std::span<char> buffer) noexcept {
  const std::string_view found = cython_or_rust_name(symbol, buffer);
  return found.empty() ? short_cxx_name(symbol, buffer) : found;
}

}  // namespace oomrec::names
