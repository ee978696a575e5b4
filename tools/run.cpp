// `oomrec run`: starts a program with the recorder, waits for it, and tells what became of it.
#include <fmt/format.h>

#include <ctime>

#include "tools/commands.h"
#include "tools/large_stack.h"
#include "tools/launch/aftermath.h"
#include "tools/launch/options.h"
#include "tools/launch/process.h"
#include "tools/launch/recorded.h"
#include "tools/log.h"
#include "tools/text.h"

namespace oomrec::tools {

int run_command(const Words& words) {
  RunOptions options;
  if (!options.parse(words)) return code(Exit::shown);

  if (!options.in_force().quiet) tell_unknown_variables();
  const std::string path = find_program(options.program().front());
  if (options.in_force().mode == Mode::off) {
    return exit_code_of(run_program(path, options.program(), {}).wait_status);
  }
  const std::string why_not = unsuitability(path);
  if (!why_not.empty()) {
    remark(fmt::format("{} {}; it runs without the recorder", printable(path), why_not));
    return exit_code_of(run_program(path, options.program(), {}).wait_status);
  }
  const Settings settings = recording_settings(options);
  Watch watch;
  const Ended ended = run_program(path, options.program(), settings, &watch);
  const Watched watched = watch.ended(ended.wait_status);
  on_large_stack([&] {
    tell_the_end(ended, watched, {path, options.program(), settings, options.in_force()});
  });
  return exit_code_of(ended.wait_status);
}

}  // namespace oomrec::tools
