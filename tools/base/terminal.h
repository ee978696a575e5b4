// Colour on a terminal, unless NO_COLOR is set.
#pragma once

#include <string>
#include <string_view>

namespace oomrec::tools {

enum class Colour { plain, bold, dim, red, yellow, green, cyan };

class Terminal {
 public:
  // Enables colour if `descriptor` is a terminal and the environment does not forbid it.
  explicit Terminal(int descriptor);
  Terminal() = default;

  std::string paint(Colour colour, std::string_view text) const;
  bool coloured() const { return coloured_; }

 private:
  bool coloured_ = false;
};

inline constexpr std::size_t kColumns = 100;

}  // namespace oomrec::tools
