// A memory cgroup of the program's own (--cgroup SIZE), with a window to write in: whoever reaches
// the limit stands still until release(), and only then the kernel decides.
//
// v1 has a switch for that (memory.oom_control); in v2 a fence below the limit (memory.high) slows
// the program down. Should we die before release(), a guard process releases it for us: a program
// is never left standing.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace oomrec::tools::processes {

class ProgramCgroup {
 public:
  // Below our own. Throws Error with run_failed where cgroups cannot be written.
  explicit ProgramCgroup(std::uint64_t bytes);
  ~ProgramCgroup();  // releases, and removes it once it is empty
  ProgramCgroup(const ProgramCgroup&) = delete;
  ProgramCgroup& operator=(const ProgramCgroup&) = delete;

  std::uint64_t bytes() const { return bytes_; }

  // Moves the calling process, a child of ours before its exec. False with errno.
  bool enter() const noexcept;

  // Waits until processes stand still at the limit. False: stop_waiting() was called.
  bool wait_for_brink() const;
  void stop_waiting() const;

  void release() const;
  std::vector<pid_t> processes() const;

 private:
  void limit();
  void watch();
  void guard();

  std::string path_;
  std::uint64_t bytes_;
  bool v1_;
  int event_ = -1;       // readable (v1) or exceptional (v2) when something happened
  int stop_ = -1;        // eventfd
  int guard_pipe_ = -1;  // the guard wakes when it is closed
};

}  // namespace oomrec::tools::processes
