// An error of the command line, in two lines: what happened, and what to do.
//
// main() catches Error once, prints both on stderr and returns the code. Nothing else in tools/
// prints an error or calls exit().
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace oomrec::tools {

// Exit codes: of every command but `run`, one more of `stress`, and those of `run` itself, which
// are the same as of env and timeout.
enum class Exit : int {
  shown = 0,
  nothing_found = 1,
  check_failed = 1,  // --fail, --fail-above
  in_part = 1,       // merge: some input could not be read
  bad_input = 2,
  stress_refused = 3,
  run_failed = 125,
  run_not_executable = 126,
  run_not_found = 127,
};

class Error : public std::runtime_error {
 public:
  Error(Exit code, const std::string& what_happened, std::string what_to_do)
      : std::runtime_error(what_happened), code_(code), what_to_do_(std::move(what_to_do)) {}

  Exit code() const noexcept { return code_; }
  const std::string& what_to_do() const noexcept { return what_to_do_; }

 private:
  Exit code_;
  std::string what_to_do_;
};

}  // namespace oomrec::tools
