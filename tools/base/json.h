// Reads JSON from untrusted files, and prints it with its keys in the order of insertion.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "tools/base/json_value.h"

namespace oomrec::tools {

// The object in the file `name` of a bundle; an empty one if the file is missing, is a link, is not
// JSON or exceeds 64 MiB. Then `problem`, if given, says why: "is missing", "is a symbolic link".
Json read_json(const std::filesystem::path& bundle, std::string_view name,
               std::string* problem = nullptr);
// The value in the file, of any type; null where read_json() returns an empty object.
Json read_any_json(const std::filesystem::path& bundle, std::string_view name);

// A member of an object; nullopt if it is absent or has another type.
std::optional<std::string> text_of(const Json& object, std::string_view key);
std::optional<std::uint64_t> number_of(const Json& object, std::string_view key);
const Json& member(const Json& object, std::string_view key);  // null when absent

// null for an empty text and for 0, which mean unknown.
Json text_or_null(std::string_view text);
inline Json number_or_null(std::integral auto number) {
  return number != 0 ? Json(number) : Json();
}

// The text, on one line unless `indent` is given. Invalid UTF-8 is replaced, and terminal control
// characters are escaped.
std::string json_text(const Json& value, int indent = -1);

// Prints it and a newline on stdout.
void print_json(const Json& value);

// Parses JSON, and bounds what it costs: others wrote it.
//
// A byte of text can become a value of 48 bytes: the size of a file says little about its memory.
// Texts that end up in one result, such as the lines of a file, share a budget.

// "needs more than 384 MiB of memory": the end of a sentence.
class JsonTooLarge : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class JsonBudget {
 public:
  static constexpr std::size_t kBytes = std::size_t{384} << 20;

  explicit JsonBudget(std::size_t bytes = kBytes) : bytes_(bytes) {}

  // Throws JsonTooLarge once the sum exceeds the budget.
  void take(std::size_t bytes) {
    if (bytes > bytes_ - used_)
      throw JsonTooLarge{"needs more than " + std::to_string(bytes_ >> 20) + " MiB of memory"};
    used_ += bytes;
  }

 private:
  std::size_t bytes_, used_ = 0;
};

// The only parser of JSON in tools/, in time linear in the text. `discarded` if the text is not
// JSON. Throws JsonTooLarge, and std::length_error if it is nested deeper.
Json parse_json(std::string_view text, JsonBudget& budget, std::size_t deepest = 64);

// The same with a budget of its own: `discarded` also if it is too large or nested too deep.
Json parse_json(std::string_view text);

}  // namespace oomrec::tools
