// Parses JSON, and bounds what it costs: others wrote it.
//
// A byte of text can become a value of 48 bytes: the size of a file says little about its memory.
// Texts that end up in one result, such as the lines of a file, share a budget.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

#include "tools/base/json_value.h"

namespace oomrec::tools {

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
