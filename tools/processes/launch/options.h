// The rows of common/options/options.h as flags of `oomrec run`.
#pragma once

#include <string>
#include <vector>

#include "common/options/options.h"
#include "tools/processes/launch/process.h"

namespace oomrec::tools::processes {

struct OptionRow {
  std::string_view name;      // "limit_as"
  std::string_view variable;  // "OOMREC_LIMIT_AS"
  OptionType type;
  std::string_view standard;
  std::string_view help;

  std::string flag() const;                // "--limit-as"
  std::string_view value() const;          // "SIZE"; empty for a switch
  std::string help_text() const;           // with the standard value
  std::vector<std::string> words() const;  // values, where they are words
};
const std::vector<OptionRow>& option_rows();

// The command line of `oomrec run`. A value that is not understood, in a flag or in a variable that
// is already set, is an Error with run_failed.
class RunOptions {
 public:
  // False: --help was printed.
  bool parse(const std::vector<std::string>& words);

  const Settings& settings() const { return settings_; }  // variables that the flags set
  const std::vector<std::string>& program() const { return program_; }  // with its interpreter
  const Options& in_force() const { return in_force_; }         // as the library will read them
  std::uint64_t cgroup_bytes() const { return cgroup_bytes_; }  // --cgroup; 0: none
  bool live() const { return live_; }

 private:
  void read();

  Settings settings_;
  std::vector<std::string> program_;
  std::vector<std::string> environment_;  // that in_force_ points into
  Options in_force_;
  std::uint64_t cgroup_bytes_ = 0;
  bool live_ = false;
};

// Says on stderr which OOMREC_* variables of the environment nobody reads: mistyped ones.
void tell_unknown_variables();

}  // namespace oomrec::tools::processes
