#include "common/session/secrets.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace oomrec::session {

namespace {

constexpr std::string_view kWords[] = {"password", "passwd", "passphrase", "passcode", "token",
                                       "secret",   "apikey", "credential", "bearer",   "key"};

constexpr char lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool equal_words(std::string_view text, std::string_view word) noexcept {
  return std::equal(text.begin(), text.end(), word.begin(), word.end(),
                    [](char a, char b) { return lower(a) == b; });
}

// Whether `text` contains `word`; "key" must end a word: --api-key, but not --keyboard.
bool contains_word(std::string_view text, std::string_view word) noexcept {
  for (std::size_t at = 0; at + word.size() <= text.size(); ++at) {
    if (!equal_words(text.substr(at, word.size()), word)) continue;
    const std::size_t after = at + word.size();
    const bool ends =
        after == text.size() || text[after] == '-' || text[after] == '_' || text[after] == 's';
    if (word != "key" || ends) return true;
  }
  return false;
}

bool is_secret_name(std::string_view name) noexcept {
  return std::any_of(std::begin(kWords), std::end(kWords),
                     [&](std::string_view word) { return contains_word(name, word); });
}

// Whether the next argument is a secret value: after an option, or after the bare word.
bool precedes_secret(std::string_view argument) noexcept {
  if (!argument.empty() && argument[0] == '-') return is_secret_name(argument);
  return std::any_of(std::begin(kWords), std::end(kWords),
                     [&](std::string_view word) { return equal_words(argument, word); });
}

// The secret part of `argument` itself; empty: none.
std::string_view secret_in(std::string_view argument) noexcept {
  const std::size_t equals = argument.find('=');
  if (equals != std::string_view::npos && is_secret_name(argument.substr(0, equals))) {
    return argument.substr(equals + 1);
  }
  const std::size_t scheme = argument.find("://");
  if (scheme == std::string_view::npos) return {};
  const std::string_view rest = argument.substr(scheme + 3);
  const std::string_view authority = rest.substr(0, rest.find('/'));
  const std::size_t at = authority.rfind('@');
  const std::size_t colon = authority.find(':');
  if (at == std::string_view::npos || colon == std::string_view::npos || colon > at) return {};
  return authority.substr(colon + 1, at - colon - 1);
}

}  // namespace

std::size_t mask_secrets(char* arguments, std::size_t bytes) noexcept {
  std::size_t written = 0;
  bool value_follows = false;
  for (std::size_t at = 0; at < bytes;) {
    char* const start = arguments + at;
    const std::size_t left = bytes - at;
    const void* const nul = std::memchr(start, '\0', left);
    const std::size_t length =
        nul == nullptr ? left : static_cast<std::size_t>(static_cast<const char*>(nul) - start);
    const std::string_view argument{start, length};

    const bool is_value = value_follows && !argument.empty() && argument[0] != '-';
    const std::string_view secret = is_value ? argument : secret_in(argument);
    value_follows =
        !is_value && argument.find('=') == std::string_view::npos && precedes_secret(argument);

    const std::size_t before =
        secret.empty() ? length : static_cast<std::size_t>(secret.data() - start);
    const std::size_t after = secret.empty() ? length : before + secret.size();
    std::memmove(arguments + written, start, before);
    written += before;
    const std::size_t stars = std::min<std::size_t>(secret.size(), 3);
    std::memset(arguments + written, '*', stars);
    written += stars;
    std::memmove(arguments + written, start + after, length - after);
    written += length - after;
    if (nul != nullptr) arguments[written++] = '\0';
    at += length + 1;
  }
  return written;
}

}  // namespace oomrec::session
