// A line on the user's terminal about work that takes its time; nothing where stderr is no
// terminal, and nothing about what is done at once. The line goes when the work is done.
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

  void step();  // cost: an addition, mostly

 private:
  using Clock = std::chrono::steady_clock;
  void show();

  const std::string what_;
  const std::size_t steps_;
  std::size_t done_ = 0;
  const bool wanted_;
  bool shown_ = false;
  Clock::time_point next_;
};

}  // namespace oomrec::tools
