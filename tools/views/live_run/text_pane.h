// The last lines of a program's output, in a pane of the screen.
//
// It interprets what progress bars and prompts use: newlines, carriage returns, tabs, cursor moves
// and erasures within the last lines. It drops all other control sequences, so that no output of
// the program can reach the terminal as a command.
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

  void feed(char byte);
  void feed_text(char byte);
  void put(char32_t character);
  void apply_control(char final);
  void move_to_row(std::size_t row);

  std::deque<std::u32string> lines_{std::u32string{}};
  std::size_t row_ = 0, column_ = 0;  // of the cursor, in lines_
  State state_ = State::text;
  std::string parameters_;  // of a control sequence
  std::string unfinished_;  // a UTF-8 sequence
};

}  // namespace oomrec::tools::views
