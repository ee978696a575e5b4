#include "common/limits/privileges.h"

#include "common/system/files.h"
#include "common/system/text.h"

namespace oomrec::limit {

std::uint64_t effective_capabilities(std::string_view status) noexcept {
  std::uint64_t value = 0;
  for (const char c : system::field(status, "CapEff:")) {
    if (c >= '0' && c <= '9') value = value << 4 | static_cast<std::uint64_t>(c - '0');
    if (c >= 'a' && c <= 'f') value = value << 4 | static_cast<std::uint64_t>(c - 'a' + 10);
  }
  return value;
}

// It has a buffer, so it may not be inlined: a hook uses little stack.
[[gnu::noinline]] bool is_in_initial_namespace() noexcept {
  char path[320], text[64];
  system::Text(path) << system::g_roots.proc << "/self/uid_map";
  if (system::read_file(path, text, sizeof(text)) <= 0) return true;
  std::string_view rest = text;
  const std::uint64_t inside = system::number_in(rest, &rest);
  const std::uint64_t outside = system::number_in(rest, &rest);
  return inside == 0 && outside == 0 && system::number_in(rest) == 0xffff'ffff;
}

}  // namespace oomrec::limit
