#include "tools/views/screen/screen.h"

#define NCURSES_NOMACROS  // functions: its macros are common words
#include <curses.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cwchar>
#include <string_view>

#include "tools/base/environment.h"
#include "tools/base/error.h"
#include "tools/base/text.h"
#include "tools/views/screen/picture.h"

namespace oomrec::tools::views {
namespace {

constexpr int kSizeCheckInterval_ms = 200;
constexpr int kEscape_ms = 25;  // wait after Esc, which may begin the sequence of a key

struct Attribute {
  attr_t attributes;
  short pair;
};

// By Colour.
constexpr std::array<Attribute, 7> kAttributes = {{
    {A_NORMAL, 0},
    {A_BOLD, 0},
    {A_DIM, 0},
    {A_BOLD, COLOR_RED},
    {A_NORMAL, COLOR_YELLOW},
    {A_NORMAL, COLOR_GREEN},
    {A_NORMAL, COLOR_CYAN},
}};

std::wstring wide(std::string_view text) {
  const std::string source{text};
  const char* from = source.c_str();
  std::mbstate_t state{};
  std::wstring result(source.size() + 1, L'\0');
  const std::size_t length = std::mbsrtowcs(result.data(), &from, result.size(), &state);
  result.resize(length == static_cast<std::size_t>(-1) ? 0 : length);
  return result;
}

struct CursesKey {
  wint_t code;
  Key key;
};
constexpr CursesKey kKeys[] = {
    {KEY_UP, Key::up},
    {KEY_DOWN, Key::down},
    {KEY_LEFT, Key::left},
    {KEY_RIGHT, Key::right},
    {KEY_PPAGE, Key::page_up},
    {KEY_NPAGE, Key::page_down},
    {KEY_HOME, Key::home},
    {KEY_END, Key::end},
    {KEY_BTAB, Key::back_tab},
    {KEY_ENTER, Key::enter},
    {KEY_BACKSPACE, Key::backspace},
    {KEY_RESIZE, Key::resized},
};

Key key_of(int kind, wint_t code) {
  if (kind == KEY_CODE_YES) {
    for (const CursesKey& row : kKeys)
      if (row.code == code) return row.key;
    return Key::none;
  }
  if (code == L'\n') return Key::enter;
  if (code == L'\b') return Key::backspace;
  return static_cast<Key>(code);
}

}  // namespace

struct Screen::State {
  SCREEN* screen = nullptr;
  Size size;
  bool coloured = false;
};

Size terminal_size() {
  struct winsize size {};
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col != 0;
  return known ? Size{size.ws_col, size.ws_row} : Size{};
}

bool is_screen_possible() {
  const std::string term = environment_variable("TERM");
  return isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1 && !term.empty() && term != "dumb";
}

Screen::Screen() : state_(std::make_unique<State>()) {
  terminal_charset();  // sets the locale, which ncurses reads
  use_env(FALSE);      // LINES and COLUMNS do not follow the size
  use_tioctl(TRUE);
  state_->screen = newterm(nullptr, stdout, stdin);
  if (state_->screen == nullptr) {
    throw Error{Exit::bad_input,
                fmt::format("unknown terminal type '{}'", printable(environment_variable("TERM"))),
                "Set TERM to a known one, such as xterm."};
  }
  set_term(state_->screen);
  raw();
  noecho();
  nonl();
  keypad(stdscr, TRUE);
  set_escdelay(kEscape_ms);
  wtimeout(stdscr, 0);
  curs_set(0);
  leaveok(stdscr, TRUE);
  state_->coloured = Terminal{STDOUT_FILENO}.coloured() && start_color() == OK;
  if (state_->coloured) {
    use_default_colors();
    for (const Attribute& attribute : kAttributes)
      if (attribute.pair != 0) init_pair(attribute.pair, attribute.pair, -1);
  }
}

Screen::~Screen() {
  curs_set(1);
  endwin();
  delscreen(state_->screen);
}

Charset Screen::charset() const { return terminal_charset(); }

void Screen::draw(const Picture& picture) {
  const Size size = terminal_size();
  if (size != state_->size) {
    resizeterm(static_cast<int>(size.rows), static_cast<int>(size.columns));
    clearok(stdscr, TRUE);  // terminals differ in what they keep when resized
    state_->size = size;
  }
  werase(stdscr);
  for (std::size_t row = 0; row < std::min(picture.size(), size.rows); ++row) {
    const Line& line = picture[row];
    const attr_t reversed = line.reversed ? A_REVERSE : A_NORMAL;
    wmove(stdscr, static_cast<int>(row), 0);
    std::size_t left = size.columns;
    const auto put = [&](const std::string& text, Colour colour) {
      const Attribute& attribute = kAttributes[static_cast<std::size_t>(colour)];
      const short pair = state_->coloured ? attribute.pair : short{0};
      wattr_set(stdscr, attribute.attributes | reversed, pair, nullptr);
      waddwstr(stdscr, wide(charset() == Charset::utf8 ? text : in_ascii(text)).c_str());
    };
    for (const Span& span : line.spans) {
      const std::string shown = cut(span.text, left);
      left -= std::min(left, columns_of(shown));
      put(shown, span.colour);
    }
    if (line.reversed) put(std::string(left, ' '), Colour::plain);
  }
  wattr_set(stdscr, A_NORMAL, 0, nullptr);
  wrefresh(stdscr);
}

void Screen::redraw() { clearok(stdscr, TRUE); }

Key Screen::key(int timeout_ms) {
  do {
    if (terminal_size() != state_->size) return Key::resized;
    wint_t code = 0;
    const int kind = wget_wch(stdscr, &code);
    if (kind != ERR) return key_of(kind, code);
    const int wait_ms = std::min(timeout_ms, kSizeCheckInterval_ms);
    struct pollfd input {
      STDIN_FILENO, POLLIN, 0
    };
    poll(&input, 1, wait_ms);
    if ((input.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) return Key::end_of_input;
    if ((input.revents & POLLIN) == 0) timeout_ms -= wait_ms;
  } while (timeout_ms > 0);
  return Key::none;
}

void Screen::suspend() {
  endwin();
  raise(SIGTSTP);
  redraw();
}

}  // namespace oomrec::tools::views
