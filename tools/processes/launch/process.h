// Runs a program in the same terminal and process group, forwards signals, and returns its wait
// status.
//
// Signals that another process sends us are forwarded; those of the terminal reach the program
// directly. As pid 1 it reaps every orphan until the program ends.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "tools/deaths/death_observer.h"

namespace oomrec::tools::processes {

// The path of program `name`, as execvp() would find it; a path with a slash is returned unchanged.
// Throws Error with run_not_found or run_not_executable.
std::string find_program(const std::string& name);

// NAME=value pairs to set in the program's environment.
using Settings = std::vector<std::pair<std::string, std::string>>;

struct Ended {
  pid_t pid;
  int wait_status;
};

// Hooks into the start of a program; each may be empty.
struct AtStart {
  std::function<bool()> before_exec;   // in the child; false: errno says why it does not start
  std::function<void(pid_t)> started;  // in this process, once the program runs
  std::function<void()> ended;         // likewise, when it has ended, before it is waited for
  // Another child has been waited for. True: one of this process's own, false: an orphan.
  std::function<bool(pid_t, int wait_status)> is_own;
};

// `observer` samples twice a second while the program runs; may be null. Throws Error if the
// program cannot be started.
Ended run_program(const std::string& path, const std::vector<std::string>& words,
                  const Settings& settings, deaths::DeathObserver* observer = nullptr,
                  const AtStart& at_start = {});

}  // namespace oomrec::tools::processes
