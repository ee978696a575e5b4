// Keeps passwords out of recordings: which arguments are secrets, by three kinds of evidence, each
// in a source of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace oomrec::session {

// Masks secrets, in place, in an argument list of `bytes` bytes with NULs between the arguments,
// and returns the new length: each becomes `***`, a short one fewer. A secret is known
// - by the name before it: `--db-password X`, `API_KEY=X`, `{"token": "X"}`, `Authorization: X`,
//   `?sig=X` (secret_names.cpp),
// - by its shape: `ghp_…`, `scheme://user:X@host` (secret_shapes.cpp),
// - by the program whose option it is: `mysql -pX` (secret_options.cpp).
// An argument with blanks in it may be a command of its own (`sh -c '…'`) and is read as one.
//
// Only guesses: a password that is called `--colour` stays. Bytes that are no secret are never
// changed, because they are evidence. Linear in `bytes`, allocates nothing.
std::size_t mask_secrets(char* arguments, std::size_t bytes) noexcept;

// Keeps only the first argument, which names the program, and the names of options: of
// `train.py data --lr=0.1 -j8 --token X` it keeps `train.py --lr -j --token`. The same otherwise.
std::size_t keep_names(char* arguments, std::size_t bytes) noexcept;

// --- By shape alone, whatever stands before it: ghp_…, AKIA…, JWTs, keys, passwords in URLs

// A part of a text; empty: none.
struct Span {
  std::size_t start = 0;
  std::size_t end = 0;

  bool empty() const noexcept { return start == end; }
};

// The secret whose shape begins at `text[at]`.
Span secret_shape_at(std::string_view text, std::size_t at) noexcept;

// --- By the name before it: --db-password, API_KEY, but not --max-tokens or --sort-key

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

// --- By the program: options whose names say nothing, `mysql -pX`, `curl -u user:X`

// Which part of the value is secret.
enum class SecretPart : std::uint8_t {
  whole,
  after_colon,    // user:password
  after_percent,  // user%password
  assigned,       // all, if it is name=value; else it names a file
};

struct SecretOption {
  SecretPart part;
  bool is_attached;  // the value follows in the same word
  std::string_view option;
};

// The programs that a command line has named so far, by their words.
class NamedPrograms {
 public:
  void read(std::string_view word) noexcept;

  // Whether `word` is such an option of the last program; fills `found`.
  bool find(std::string_view word, SecretOption& found) const noexcept;

 private:
  std::uint64_t rows_ = 0;  // bit i: row i of the table applies
  bool has_login_ = false;  // docker login -p X, but docker run -p 80:80
};

}  // namespace oomrec::session
