// The facts behind `oomrec info`: whether a program would be recorded, or what the machine has and
// which hooks work there; and the limits and directories in force.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/base/json.h"
#include "tools/base/terminal.h"
#include "tools/processes/launch/facts.h"
#include "tools/processes/observe/system.h"

namespace oomrec::tools::views {

struct ProgramCheck {
  std::string program;  // path
  std::string why_not;  // empty: it would be recorded
  std::string python;   // empty: not a Python program
  std::vector<processes::Fact> facts;

  bool recorded() const { return why_not.empty(); }
};

struct Machine {
  processes::SystemFacts system;
  processes::PythonFacts python;
  std::vector<processes::Fact> hooks;  // empty: no program could be started with the recorder
};

struct Directory {
  std::string name;
  std::string path;      // empty: not configured
  const char* fallback;  // used, or printed, instead
};

struct Setup {
  std::vector<processes::SystemLimit> limits;
  std::vector<Directory> directories;
  std::optional<ProgramCheck> program;  // either this
  std::optional<Machine> machine;       // or this
};

// Starts the program as `oomrec run` would, and stops it before its main. `words`: the program and
// its arguments. Throws Error if there is no such program.
Setup setup_for_program(const std::vector<std::string>& words);

enum class Detail { usual, all };  // all: also swap, libraries, UUIDs, Python packages

// `device`: the value of --device. Throws Error if there is no such device.
Setup setup_of_machine(const std::string& device, Detail detail);

// A setup as a page and as JSON (docs/commands/info.md).

void print_setup(const Setup& setup, Detail detail, const Terminal& terminal);
Json setup_json(const Setup& setup);

}  // namespace oomrec::tools::views
