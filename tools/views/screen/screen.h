// The terminal as a screen: a picture goes out, keys come in. The only file that knows ncurses.
//
// Of the environment it takes the terminal, its character set and NO_COLOR. The terminal is as it
// was when a Screen ends.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "tools/views/screen/picture.h"

namespace oomrec::tools::views {

enum class Key : char32_t {
  none = 0,  // the time is up
  enter = '\r',
  escape = 0x1b,
  tab = '\t',
  backspace = 0x7f,
  interrupt = 3,  // Ctrl-C
  suspend = 26,   // Ctrl-Z
  // Beyond all characters.
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
  end_of_input,  // the terminal is gone
};
constexpr char32_t character(Key key) { return static_cast<char32_t>(key); }

// Whether stdin and stdout are a terminal that a screen can be had on.
bool is_screen_possible();

Size terminal_size();  // of stdout, now; 80 × 24 where it is none

class Screen {
 public:
  // Throws Error where the terminal cannot do it.
  Screen();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  bool utf8() const;

  // Only what differs from before is sent. Lines beyond the size are left out.
  void draw(const Picture&);
  // Everything is drawn anew at the next draw(): something else may have written.
  void redraw();

  // The next key, at most `timeout_ms` from now. `resized` when the size is another than at the
  // last draw(): looked at five times a second at least.
  Key key(int timeout_ms);

  // Ctrl-Z: the shell has the terminal until it lets us go on.
  void suspend();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace oomrec::tools::views
