#include "tools/base/terminal.h"

#include <unistd.h>

#include <array>
#include <cstdlib>

namespace oomrec::tools {

Terminal::Terminal(int descriptor) {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  const bool is_allowed = no_color == nullptr || *no_color == '\0';
  const bool is_dumb = term == nullptr || std::string_view{term} == "dumb";
  coloured_ = is_allowed && !is_dumb && isatty(descriptor) == 1;
}

std::string Terminal::paint(Colour colour, std::string_view text) const {
  static constexpr std::array<std::string_view, 7> kCodes = {"", "1", "2", "31", "33", "32", "36"};
  if (!coloured_ || colour == Colour::plain || text.empty()) return std::string{text};
  std::string painted = "\x1b[";
  painted += kCodes[static_cast<std::size_t>(colour)];
  painted += 'm';
  painted += text;
  painted += "\x1b[0m";
  return painted;
}

}  // namespace oomrec::tools
