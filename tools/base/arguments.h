// The words after a subcommand: flags, options, what is left. A thin cover over CLI11, so that one
// file alone compiles it and every command answers --help and a mistake in the same way. Of an
// option given twice the last one counts.
#pragma once

#include <functional>
#include <memory>
#include <optional>
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

// All that may follow a subcommand, but for --help.
struct ArgumentTable {
  std::vector<ArgumentRow> options;
  std::vector<ArgumentRow> positionals;
  bool rest = false;      // the last positional begins another program's words
  bool repeated = false;  // the last positional may be given any number of times
};

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

  // One or more, and the last one: what is left of the words.
  void positionals(const std::string& name, std::vector<std::string>& values,
                   const std::string& help);

  // From the first word that is no flag on, or that is one of `beginnings`, or from "--" on, all
  // belongs to `words`.
  void rest(const std::string& name, std::vector<std::string>& words, const std::string& help,
            const std::vector<std::string>& beginnings = {});

  // False: --help was asked for and printed, or table_of() called. A mistake is an Error with
  // `bad_input`.
  bool parse(const std::vector<std::string>& words, Exit bad_input = Exit::bad_input);

  bool given(const std::string& name) const;
  std::string help() const;

  // What a command takes: the first parse() in `command` tells, and parses nothing.
  static ArgumentTable table_of(const std::function<void()>& command);

 private:
  static inline ArgumentTable* listener_ = nullptr;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace oomrec::tools
