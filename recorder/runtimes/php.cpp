#include "recorder/runtimes/php.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "common/text/text.h"
#include "recorder/symbols/elf_symbols.h"

// Exported by the program `php`. Weak: 0 in every other.
extern "C" [[gnu::weak]] const char core_globals;
extern "C" [[gnu::weak]] const char zend_error_cb;

namespace oomrec::recorder {
namespace {

constexpr std::string_view kBeginning = "Allowed memory size of ";
constexpr std::size_t kStringHeader = 24;  // of a zend_string: PHP 8; PHP 7 has a char*

std::span<const std::uint64_t> g_globals;

// At `address`; false: other text, or unreadable.
bool copy_message(InHook hook, std::uint64_t address, std::span<char> message) noexcept {
  char text[160];
  if (!symbols::read_own_memory(hook, address, text, kBeginning.size()) ||
      std::memcmp(text, kBeginning.data(), kBeginning.size()) != 0)
    return false;
  // Up to the end of the page at most: what follows may be unreadable.
  const std::uint64_t in_page = 4096 - address % 4096;
  const std::size_t bytes = std::min<std::uint64_t>({sizeof text, message.size() - 1, in_page});
  if (!symbols::read_own_memory(hook, address, text, bytes)) return false;
  text::Text{message.data(), message.size()}.add({text, strnlen(text, bytes)});
  return true;
}

}  // namespace

void start_php() noexcept {
  if (&core_globals == nullptr || &zend_error_cb == nullptr) return;
  Dl_info program{};
  if (dladdr(&core_globals, &program) == 0) return;
  std::uint64_t bytes = 0;
  symbols::ElfSymbols exported(OutsideHooks::in_hook(),
                               reinterpret_cast<std::uint64_t>(program.dli_fbase));
  if (!exported.valid() ||
      exported.address_of(OutsideHooks::in_hook(), "core_globals", &bytes) == 0)
    return;
  g_globals = {reinterpret_cast<const std::uint64_t*>(&core_globals), bytes / 8};
  g_is_php.store(true, std::memory_order_relaxed);
}

bool find_memory_error(InHook hook, std::span<const std::uint64_t> globals,
                       std::span<char> message) noexcept {
  constexpr std::uint64_t kLowest = 1 << 16;
  constexpr std::uint32_t kByScript = 256;  // E_USER_ERROR: trigger_error() chose the words
  std::uint32_t type = 0;                   // of the error, which PHP keeps before its message
  return std::any_of(globals.begin(), globals.end(), [&](std::uint64_t word) {
    const bool is_own = type != kByScript;
    type = static_cast<std::uint32_t>(word);
    return is_own && word >= kLowest && word % 8 == 0 &&
           (copy_message(hook, word + kStringHeader, message) || copy_message(hook, word, message));
  });
}

bool php_memory_error(InHook hook, std::span<char> message) noexcept {
  return find_memory_error(hook, g_globals, message);
}

}  // namespace oomrec::recorder
