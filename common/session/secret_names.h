// Which names of options, variables and fields announce a secret: --db-password, API_KEY, but not
// --max-tokens, --sort-key or --password-file.
#pragma once

#include <string_view>

namespace oomrec::session {

// What a name says of its value.
enum class NameKind {
  harmless,
  maybe,    // a secret unless the value is a number, a choice or a path: --auth basic
  opaque,   // a secret only if the value looks like one: --key
  key,      // a secret unless the value is a path: --private-key id.pem
  certain,  // a secret, whatever the value is
};

// Splits the name into words (max-tokens, max_tokens, maxTokens); the last one says what the value
// is, and the others which kind of it.
NameKind kind_of_name(std::string_view name) noexcept;

// Whether a value after a name of this kind is a secret.
bool is_secret_value(NameKind, std::string_view value) noexcept;

// Letters and digits mixed, or both cases: no word of a language, no name of a model.
bool looks_random(std::string_view text) noexcept;

// Compares with a word in lower case.
bool equals_ignoring_case(std::string_view text, std::string_view lower) noexcept;

}  // namespace oomrec::session
