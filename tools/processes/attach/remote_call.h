// Calls a function of liboomrec.so on a thread of a running process.
//
// One thread is stopped, where it is in no function that holds a lock (safe_point.h), and runs the
// call; all others go on. It then goes on where it was, with its registers, its signal mask, its
// floating-point state, errno and a system call that it waited in. SIGKILL of this command at any
// time leaves a process that goes on: machine_code.h.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace oomrec::tools::processes {

struct RemoteRequest {
  pid_t pid = 0;
  // Of the library: its offset, if it is to be loaded; else its address.
  std::uint64_t function = 0;
  std::string argument = {};  // may contain NULs
  std::string library = {};   // to load first, as the process sees it; empty: it is loaded
};

struct RemoteResult {
  bool is_known = true;         // false: this command got no processor while the function ran
  std::string problem;          // the text that the function returned; empty: nullptr
  pid_t thread = 0;             // that ran it
  std::uint64_t paused_ns = 0;  // for so long it was kept from its own work
  unsigned attempts = 0;        // to find a safe point
};

// Throws Error: no permission, no safe point, or the process has ended.
RemoteResult call_remotely(const RemoteRequest& request);

// The steps at which a test kills the command (tests/integration/attach_dies.cpp): weak, so that a
// command with another definition has that one.
void reach_step(std::string_view step);

}  // namespace oomrec::tools::processes
