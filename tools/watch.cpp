// `oomrec watch`: a service that makes bundles of what dies, and of what is about to.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#include "tools/arguments.h"
#include "tools/bundles/bundles.h"
#include "tools/commands.h"
#include "tools/text.h"
#include "tools/watch/watcher.h"

namespace oomrec::tools {
namespace {

constexpr const char* kExamples =
    "  oomrec watch                        every recorded process of yours, until SIGTERM\n"
    "  oomrec watch /var/lib/oomrec        recordings in this directory (OOMREC_SESSION_DIR)\n"
    "  oomrec watch --once                 what is dead now, and no more\n"
    "  oomrec watch --on-oom-exec 'oomrec show %b | mail -s \"%p is dead\" me'\n";

}  // namespace

int watch_command(const Words& words) {
  Arguments arguments{
      "watch", "[OPTIONS] [DIR]",
      "Watches recorded processes from outside: a bundle within a second of each death, and one of "
      "the largest when the machine waits for memory. Bundles go where their program was told to "
      "write them.",
      kExamples};
  std::string directory;
  bool once = false;
  arguments.positional("DIR", directory,
                       "a directory of recordings (those that oomrec chooses by itself)");
  arguments.flag("--once", once, "make bundles of what is dead now, and end (0: some, 1: none)");
  std::string command;
  arguments.option("--on-oom-exec", "COMMAND", command,
                   "run COMMAND by sh for each process that was killed for its memory; %p pid, %b "
                   "the bundle");
  if (!arguments.parse(words)) return code(Exit::shown);
  if (!directory.empty()) {
    std::error_code error;
    if (!std::filesystem::is_directory(directory, error)) {
      throw Error{Exit::bad_input, fmt::format("{} is no directory", printable(directory)),
                  "Give the directory that OOMREC_SESSION_DIR names."};
    }
    setenv("OOMREC_SESSION_DIR", std::filesystem::absolute(directory).c_str(), 1);
  }
  const auto tell = [](const std::string& line) {
    fmt::print("{}\n", line);
    std::fflush(stdout);
  };
  Watcher watcher{dump_directories(), tell, command};
  if (once) return code(watcher.look_once() != 0 ? Exit::shown : Exit::nothing_found);
  watcher.run();
  return code(Exit::shown);
}

}  // namespace oomrec::tools
