// `oomrec lib`: the library's path, for LD_PRELOAD.
#include <fmt/format.h>

#include "tools/base/arguments.h"
#include "tools/base/text.h"
#include "tools/commands/commands.h"
#include "tools/processes/launch/library.h"

namespace oomrec::tools::commands {

namespace {

constexpr const char* kLibExamples =
    "  LD_PRELOAD=$(oomrec lib) OOMREC_LIMIT=8G python train.py   as `oomrec run`, without a "
    "launcher\n"
    "\n"
    "Exit code 1: LD_PRELOAD cannot hold its path. 125: there is no library.\n";

}  // namespace

int lib_command(const Words& words) {
  Arguments arguments{"lib", "",
                      "Prints the path of liboomrec.so, for LD_PRELOAD, when `oomrec run` does not "
                      "start the program.",
                      kLibExamples};
  if (!arguments.parse(words)) return code(Exit::shown);
  const std::string library = processes::find_library();
  if (!processes::is_preloadable(library)) {
    throw Error{Exit::nothing_found,
                fmt::format("LD_PRELOAD cannot hold the library's path '{}': the loader ends a "
                            "name at blanks and colons, and expands '$'",
                            printable(library)),
                "Use `oomrec run`, or preload a symbolic link: ln -s "
                "THAT_PATH ~/liboomrec.so"};
  }
  fmt::print("{}\n", library);
  return code(Exit::shown);
}

}  // namespace oomrec::tools::commands
