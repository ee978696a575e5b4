// The terminal as a screen: it draws pictures and reads keys. screen.cpp is the only file that uses
// ncurses.
//
// From the environment it takes TERM, the locale's character set and NO_COLOR. The destructor
// restores the terminal.
#pragma once

#include <memory>

#include "tools/views/screen/picture.h"

namespace oomrec::tools::views {

enum class Key : char32_t {
  none = 0,  // timeout
  enter = '\r',
  escape = 0x1b,
  tab = '\t',
  backspace = 0x7f,
  interrupt = 3,  // Ctrl-C
  suspend = 26,   // Ctrl-Z
  // Larger than any Unicode character.
  up = 0x110000,
  down,
  left,
  right,
  page_up,
  page_down,
  home,
  end,
  back_tab,
  resized,
  end_of_input,  // the terminal was closed
};
constexpr char32_t character(Key key) { return static_cast<char32_t>(key); }

// Whether stdin and stdout are a terminal that can show a screen.
bool is_screen_possible();

Size terminal_size();  // of stdout, now; 80 × 24 if it is no terminal

class Screen {
 public:
  // Throws Error if the type of the terminal is unknown.
  Screen();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  Charset charset() const;

  // Sends only what changed since the last draw(). Lines beyond the size are left out.
  void draw(const Picture&);
  // Makes the next draw() send everything, after something else may have written to the terminal.
  void redraw();

  // Waits at most `timeout_ms` for a key. Returns `resized` if the size has changed since the last
  // draw(); the size is checked at least five times a second.
  Key key(int timeout_ms);

  // For Ctrl-Z: gives the terminal to the shell until the shell continues this process.
  void suspend();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace oomrec::tools::views
