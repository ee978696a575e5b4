// The last lines of what a program prints, in a pane of the screen.
//
// It understands what progress bars and prompts need: new lines, carriage returns, tabs, moves and
// erasures within the last lines. All else that terminals know is taken in and left out, so that
// nothing the program prints can reach the terminal as a command.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "tools/views/screen/picture.h"

namespace oomrec::tools::views {

class TextPane {
 public:
  void print(std::string_view bytes);
  std::vector<Line> lines(std::size_t most) const;  // the last ones

 private:
  enum class State : std::uint8_t { text, escape, control, string, string_escape };

  void take(char byte);
  void take_text(unsigned char byte);
  void put(char32_t character);
  void control_ends(char final);
  void move_to_row(std::size_t row);

  std::deque<std::u32string> lines_{std::u32string{}};
  std::size_t row_ = 0, column_ = 0;  // of the cursor, in lines_
  State state_ = State::text;
  std::string parameters_;  // of a control sequence
  char32_t code_ = 0;       // of an unfinished UTF-8 sequence
  unsigned missing_ = 0;    // bytes of it
};

}  // namespace oomrec::tools::views
