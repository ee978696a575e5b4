// Parses the words after a subcommand. A thin wrapper of CLI11: one file compiles it, and every
// command handles --help and mistakes in the same way. If an option is repeated, the last one wins.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tools/base/error.h"

namespace oomrec::tools {

struct ArgumentRow {
  std::string name;  // "--limit"
  std::string type;  // "SIZE"; empty: a flag
  std::string help;
  std::vector<std::string> words = {};  // values that are worth suggesting
};

// What a subcommand accepts, except --help.
struct ArgumentTable {
  std::string usage, summary;
  std::vector<ArgumentRow> options;
  std::vector<ArgumentRow> positionals;
  bool rest = false;      // the last positional takes all words from there on
  bool repeated = false;  // the last positional may be given any number of times
};

// "invalid value 'TEXT' for NAME": of an option or variable.
Error invalid_value(std::string_view name, std::string_view text, const std::string& what_to_do,
                    Exit code = Exit::bad_input);

class Arguments {
 public:
  // `usage` follows "oomrec COMMAND"; `examples` are whole lines, shown by --help as they are.
  Arguments(std::string_view command, std::string_view usage, std::string_view summary,
            std::string_view examples);
  ~Arguments();
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  void flag(const std::string& name, bool& value, const std::string& help);
  void option(const std::string& name, const std::string& type, std::string& value,
              const std::string& help, const std::vector<std::string>& suggested = {});
  void option(const std::string& name, const std::string& type, double& value,
              const std::string& help);
  void option(const std::string& name, const std::string& type, unsigned& value,
              const std::string& help);
  void choice(const std::string& name, const std::string& type, std::string& value,
              const std::vector<std::string>& words, const std::string& help);
  void positional(const std::string& name, std::string& value, const std::string& help,
                  const std::vector<std::string>& suggested = {});

  // The remaining words, one or more. It must be the last positional.
  void positionals(const std::string& name, std::vector<std::string>& values,
                   const std::string& help);

  // `words` gets everything from the first word that is not a flag or is one of `beginnings`, or
  // everything after "--".
  // `suggested`: if it is no other program's command line, what its first word may be.
  void rest(const std::string& name, std::vector<std::string>& words, const std::string& help,
            const std::vector<std::string>& beginnings = {},
            const std::vector<std::string>& suggested = {});

  // False: it printed --help, or runs under table_of(). Throws Error with `bad_input` for a
  // mistake.
  bool parse(const std::vector<std::string>& words, Exit bad_input = Exit::bad_input);

  bool given(const std::string& name) const;
  std::string help() const;

  // What a command accepts. The first parse() in `command` reports it, and parses nothing.
  static ArgumentTable table_of(const std::function<void()>& command);

 private:
  static inline ArgumentTable* listener_ = nullptr;
  struct State;
  std::unique_ptr<State> state_;
};

// --fail-above SIZE: an exit code for CI.
class FailAbove {
 public:
  void add_to(Arguments& arguments, const std::string& help);

  // After the options are parsed. Throws Error with bad_input if the value is not a size.
  void read();

  // Throws Error with check_failed if `bytes` exceed the given size. `what`: "leaked".
  void check(std::uint64_t bytes, const std::string& what) const;

 private:
  std::string text_;
  std::uint64_t bytes_ = 0;
};

}  // namespace oomrec::tools
