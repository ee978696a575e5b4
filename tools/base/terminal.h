// What goes to the terminal: colour, unless NO_COLOR is set; remarks on stderr; a progress line.
#pragma once

#include <chrono>
#include <cstddef>
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

// Remarks on stderr, for events that do not fail the command (those are in error.h).

// Whatever a command says there, it says in vain where stderr is closed or full, or a pipe without
// a reader: no exception, and no SIGPIPE. The exit code of a program that `oomrec run` has started
// must be returned.
void write_stderr(std::string_view text) noexcept;

// Prints the line "oomrec: TEXT" on stderr, not clipped.
void remark(const std::string& text);

// A progress line on the terminal for work that takes longer than half a second, cleared at its
// end. Prints nothing if stderr is not a terminal.
class Progress {
 public:
  // "naming stacks 12,000 of 100,000".
  Progress(std::string_view what, std::size_t steps);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void step();  // checks the clock only every 256 steps

 private:
  using Clock = std::chrono::steady_clock;
  void show();

  const std::string what_;
  const std::size_t steps_;
  std::size_t done_ = 0;
  const bool enabled_;
  bool shown_ = false;
  Clock::time_point next_;
};

}  // namespace oomrec::tools
