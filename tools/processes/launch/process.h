// Runs a program in our place: same terminal, same process group, signals passed on, its end
// returned as the kernel told it.
//
// Signals that another process sends us go to the program; those of the terminal reach it by
// themselves. As pid 1 every orphan is reaped until the program ends.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "tools/deaths/watch.h"

namespace oomrec::tools::processes {

// Where `name` is, as execvp() would find it: a path with a slash is taken as it is. Throws Error
// with run_not_found or run_not_executable.
std::string find_program(const std::string& name);

// NAME=value pairs to set in the program's environment.
using Settings = std::vector<std::pair<std::string, std::string>>;

struct Ended {
  pid_t pid;
  int wait_status;
};

// What else is done when a program starts; each may be empty.
struct AtStart {
  std::function<bool()> before_exec;   // in the child; false with errno: it does not start
  std::function<void(pid_t)> started;  // here, once the child is there
};

// `watch`: is kept informed, and looks twice a second while the program runs; may be null. Throws
// Error when the program could not be started.
Ended run_program(const std::string& path, const std::vector<std::string>& words,
                  const Settings& settings, deaths::Watch* watch = nullptr,
                  const AtStart& at_start = {});

// The exit code of `oomrec run`: the program's own, or 128 + N for signal N.
int exit_code_of(int wait_status);

}  // namespace oomrec::tools::processes
