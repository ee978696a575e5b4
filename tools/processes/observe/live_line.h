// Samples in words: a line that is renewed, and their summary.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tools/processes/observe/observed.h"

namespace oomrec::tools::processes {

class LiveLine {
 public:
  LiveLine();
  ~LiveLine() { clear(); }
  LiveLine(const LiveLine&) = delete;
  LiveLine& operator=(const LiveLine&) = delete;

  // Prints at most ten times a second.
  void show(double elapsed_s, const MemorySample& sample);

  // Call it before printing anything else on the terminal.
  void clear();

 private:
  const bool is_terminal_;
  bool shown_ = false;
  double shown_at_s_ = -1;
};

// The summary of `oomrec monitor`'s samples: lowest, mean, highest, last, change.
class UsageSummary {
 public:
  void add(const processes::MemorySample& sample);

  std::size_t samples() const { return samples_; }
  std::string text(const std::string& title, double seconds) const;

 private:
  std::string line(std::string_view name, double bytes) const;

  std::size_t samples_ = 0;
  double first_ = 0, lowest_ = 0, highest_ = 0, last_ = 0, sum_ = 0;  // bytes
  std::optional<std::uint64_t> total_;
};

}  // namespace oomrec::tools::processes
