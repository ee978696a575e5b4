// A line of text that is typed, and what is searched for with it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tools/views/screen/screen.h"

namespace oomrec::tools::views {

class Prompt {
 public:
  enum class Answer : std::uint8_t { open, done, left };
  Answer key(Key key);
  const std::string& text() const { return text_; }  // UTF-8

 private:
  std::string text_;
};

std::string in_utf8(char32_t code);

// Whether `words` are in `text`, whatever the case of ASCII letters.
bool holds(std::string_view text, std::string_view words);

}  // namespace oomrec::tools::views
