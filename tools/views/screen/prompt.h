// A line of text that the user types, and the search for it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tools/views/screen/screen.h"

namespace oomrec::tools::views {

class Prompt {
 public:
  enum class Answer : std::uint8_t { editing, accepted, cancelled };
  Answer key(Key key);
  const std::string& text() const { return text_; }  // UTF-8

 private:
  std::string text_;
};

std::string in_utf8(char32_t code);

// Whether `text` contains `part`. ASCII letters match in either case.
bool contains_ignoring_case(std::string_view text, std::string_view part);

}  // namespace oomrec::tools::views
