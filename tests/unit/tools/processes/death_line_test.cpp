// The line that `oomrec run` prints about a process' end.
#include "tools/processes/supervise/death_line.h"

#include <doctest/doctest.h>

using oomrec::tools::processes::end_of_process;

TEST_CASE("the first clause of the summary, with the pid after the program's name") {
  CHECK(
      end_of_process("python3.11 was killed by the kernel: its memory cgroup had reached its limit "
                     "of 64.0 MiB; it held 62.1 MiB; no refused request is on record",
                     "python3.11", 4711) ==
      "python3.11 (pid 4711) was killed by the kernel: its memory cgroup had reached its limit of "
      "64.0 MiB");
}

TEST_CASE("a summary that does not begin with the program") {
  CHECK(end_of_process("the process was killed by SIGKILL; it held 1.0 MiB", "", 7) ==
        "pid 7: the process was killed by SIGKILL");
  CHECK(end_of_process("another was killed", "server", 7) == "pid 7: another was killed");
}

TEST_CASE("control characters of a program's name do not reach the terminal") {
  const std::string line = end_of_process("a\x1b[2Jb was killed", "a\x1b[2Jb", 7);
  CHECK(line.find('\x1b') == std::string::npos);
}
