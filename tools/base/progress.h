// A progress line on the terminal for work that takes longer than half a second, cleared at its
// end. Prints nothing if stderr is not a terminal.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace oomrec::tools {

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
