// The rows of common/options/options.h as flags of `oomrec run`.
#pragma once

#include <string>
#include <vector>

#include "common/options/options.h"
#include "tools/processes/launch/process.h"

namespace oomrec::tools::processes {

struct OptionRow {
  OptionId id;
  std::string_view name;      // "limit_as"
  std::string_view variable;  // "OOMREC_LIMIT_AS"
  OptionType type;
  OptionScope scope;
  unsigned traits;  // OptionTraits
  std::string_view standard;
  std::string_view help;

  std::string flag() const;                // "--limit-as"
  std::string_view value() const;          // "SIZE"; empty for a switch
  std::string help_text() const;           // with the default
  std::vector<std::string> words() const;  // values to suggest
};
const std::vector<OptionRow>& option_rows();

// The command line of `oomrec run`.
class RunOptions {
 public:
  // `environment`: variables for the program besides ours; flags override them. False: --help was
  // printed. Throws Error with run_failed for an invalid value of a flag or variable.
  bool parse(const std::vector<std::string>& words, const Settings& environment = {});

  const Settings& settings() const {
    return settings_;
  }  // for the program: flags and `environment`
  const std::vector<std::string>& program() const { return program_; }  // with its interpreter
  const Options& in_force() const { return in_force_; }         // as the library will read them
  std::uint64_t cgroup_bytes() const { return cgroup_bytes_; }  // --cgroup; 0: none
  bool live() const { return live_; }
  bool jit_names() const { return jit_names_; }

 private:
  bool is_set(std::string_view variable) const;  // in settings_
  void read();

  Settings settings_;
  std::vector<std::string> program_;
  std::vector<std::string> environment_;  // in_force_ points into it
  Options in_force_;
  std::uint64_t cgroup_bytes_ = 0;
  bool live_ = false;
  bool jit_names_ = false;
};

// Reports OOMREC_* variables of the environment that nothing reads, such as mistyped ones.
void report_unknown_variables();

}  // namespace oomrec::tools::processes
