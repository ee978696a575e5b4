// Colour on a terminal, none in a pipe, none where NO_COLOR is set.
#pragma once

#include <string>
#include <string_view>

namespace oomrec::tools {

enum class Colour { plain, bold, dim, red, yellow, green, cyan };

class Terminal {
 public:
  // Decides once for `descriptor`: is it a terminal, and does its user want colour?
  explicit Terminal(int descriptor);
  Terminal() = default;

  std::string paint(Colour colour, std::string_view text) const;
  bool coloured() const { return coloured_; }

 private:
  bool coloured_ = false;
};

inline constexpr std::size_t kColumns = 100;

}  // namespace oomrec::tools
