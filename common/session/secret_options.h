// Options whose names say nothing, but which take a secret in certain programs: `mysql -pX`,
// `curl -u user:X`.
#pragma once

#include <cstdint>
#include <string_view>

namespace oomrec::session {

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
