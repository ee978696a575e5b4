// `oomrec fleet`: becomes the Python package's oomrec.fleet, which explains many deaths together.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "tools/base/arguments.h"
#include "tools/base/programs.h"
#include "tools/commands/commands.h"
#include "tools/processes/launch/python.h"

namespace oomrec::tools::commands {
namespace {

constexpr const char* kFleetExamples =
    "  oomrec fleet top oom_dumps                         bundles of this machine\n"
    "  oomrec fleet top s3://oom/prod --since 7d          rows of many, in a bucket\n"
    "  oomrec fleet show 1 s3://oom/prod                  the first cause of top\n"
    "  oomrec fleet sizes s3://oom/prod                   the limit that each service needs\n"
    "  oomrec fleet report s3://oom/prod -o triage.html   one page, offline\n"
    "  oomrec fleet gate s3://oom/ci --base main --head pr-17\n";

// Modules of the working directory, such as a json.py, are not imported.
constexpr const char* kScript =
    "import sys\n"
    "sys.path[:1] = []\n"
    "try:\n"
    "    from oomrec.fleet._cli import main\n"
    "except ModuleNotFoundError as error:\n"
    "    print(f'oomrec fleet: {sys.executable} has no module {error.name}',\n"
    "          \"  To install it: pip install 'oomrec[fleet]'\", sep='\\n', file=sys.stderr)\n"
    "    sys.exit(2)\n"
    "sys.exit(main(sys.argv[1:]))\n";

}  // namespace

int fleet_command(const Words& words) {
  Arguments arguments{"fleet", "ACTION [OPTIONS] [URL]",
                      "Explains the memory deaths of many machines together: what holds the "
                      "memory, what is new, which limits are too low. Reads bundles, or rows that "
                      "`oomrec watch --ship` sends, from a directory or a bucket (s3://). Needs "
                      "Python 3.10 and: pip install 'oomrec[fleet]'. `oomrec fleet ACTION --help` "
                      "lists an action's options.",
                      kFleetExamples};
  Words rest;
  const Words actions = {"top",    "new",  "regressed", "show",    "sizes",
                         "report", "gate", "push",      "compact", "reextract"};
  arguments.rest("ACTION", rest, fmt::format("one of {}", fmt::join(actions, ", ")), {}, actions);
  if (!arguments.parse(words)) return code(Exit::shown);
  const std::filesystem::path python = processes::find_python();
  if (python.empty()) {
    throw Error{Exit::bad_input, "there is no python3",
                "Install Python 3.10 or newer, then: pip install 'oomrec[fleet]'"};
  }
  // The package starts this same command to read bundles.
  setenv("OOMREC_COMMAND", std::filesystem::read_symlink("/proc/self/exe").c_str(), 0);
  Words command = {python.string(), "-c", kScript};
  command.insert(command.end(), rest.begin(), rest.end());
  execv(command[0].c_str(), arguments_of(command).data());
  throw Error{Exit::bad_input,
              fmt::format("{} cannot be started: {}", python.string(), std::strerror(errno)), ""};
}

}  // namespace oomrec::tools::commands
