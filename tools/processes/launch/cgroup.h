// A memory cgroup for the program (--cgroup SIZE), without swap. At its limit the processes pause
// until release(), so that a bundle can be written; only then can the kernel kill them.
//
// v1 pauses them by memory.oom_control. v2 cannot: memory.high, set below the limit, slows them
// down. If the command dies before release(), a guard process releases them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "common/options/options.h"

namespace oomrec::tools::processes {

class ProgramCgroup {
 public:
  // Creates it below our own cgroup. Throws Error with run_failed if cgroups cannot be written.
  explicit ProgramCgroup(std::uint64_t bytes);
  ~ProgramCgroup();  // releases it, and removes it once it is empty
  ProgramCgroup(const ProgramCgroup&) = delete;
  ProgramCgroup& operator=(const ProgramCgroup&) = delete;

  std::uint64_t bytes() const { return bytes_; }

  // Moves the calling process, a child before its exec, into it. False: errno says why.
  bool enter() const noexcept;

  // Waits until processes pause at the limit. False: stop_waiting() was called.
  bool wait_for_limit() const;
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
  int event_ = -1;       // polled for POLLIN (v1) or POLLPRI (v2)
  int stop_ = -1;        // eventfd
  int guard_pipe_ = -1;  // closing it wakes the guard
};

// Writes the bundle of a program that is paused at its cgroup's limit, and then releases it.
class CgroupLimitGuard {
 public:
  // `options`: the program's; they name the directories of its recordings.
  CgroupLimitGuard(const ProgramCgroup& cgroup, const Options& options);
  ~CgroupLimitGuard();  // waits for a bundle that is being written
  CgroupLimitGuard(const CgroupLimitGuard&) = delete;
  CgroupLimitGuard& operator=(const CgroupLimitGuard&) = delete;

 private:
  void write_bundle() const;

  const ProgramCgroup& cgroup_;
  const std::vector<std::filesystem::path> dump_directories_;
  const std::filesystem::path session_directory_;
  const bool quiet_;
  std::thread thread_;
};

}  // namespace oomrec::tools::processes
