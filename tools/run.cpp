// `oomrec run`: starts a program with the recorder, waits for it, and tells what became of it.
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <optional>

#include "tools/bundles/bundles.h"
#include "tools/bundles/outcome.h"
#include "tools/commands.h"
#include "tools/gpus/company.h"
#include "tools/large_stack.h"
#include "tools/launch/aftermath.h"
#include "tools/launch/brink.h"
#include "tools/launch/cgroup.h"
#include "tools/launch/options.h"
#include "tools/launch/process.h"
#include "tools/launch/recorded.h"
#include "tools/live_run/live_run.h"
#include "tools/log.h"
#include "tools/screen/screen.h"
#include "tools/text.h"

namespace oomrec::tools {

namespace {

// The program, in its cgroup where one was asked for, and under the live view.
Ended run_it(const RunOptions& options, const std::string& path, const Settings& settings,
             const ProgramCgroup* cgroup, Watch* watch = nullptr, LiveRun* live = nullptr) {
  AtStart at_start;
  at_start.before_exec = [&] {
    return (cgroup == nullptr || cgroup->enter()) && (live == nullptr || live->in_child());
  };
  if (live != nullptr) at_start.started = [live](pid_t program) { live->started(program); };
  if (cgroup == nullptr) return run_program(path, options.program(), settings, watch, at_start);
  const Options& in_force = options.in_force();
  if (in_force.session_dir[0] != '\0') setenv("OOMREC_SESSION_DIR", in_force.session_dir, 1);
  const BrinkWatch brink{*cgroup, {std::filesystem::absolute(in_force.dump_dir)}, in_force.quiet};
  return run_program(path, options.program(), settings, watch, at_start);
}

// Whatever goes wrong, the program goes on.
void tell_company_on_gpus(const Options& options, std::uint64_t start_ns) noexcept try {
  tell_gpu_processes(dump_directories(options.dump_dir), start_ns);
} catch (const std::exception& error) {
  remark(error.what());
}

}  // namespace

int run_command(const Words& words) {
  RunOptions options;
  if (!options.parse(words)) return code(Exit::shown);

  if (!options.in_force().quiet) tell_unknown_variables();
  const std::string path = find_program(options.program().front());
  std::optional<ProgramCgroup> cgroup;  // until its end has been explained: its counters tell
  if (options.cgroup_bytes() != 0) cgroup.emplace(options.cgroup_bytes());
  const ProgramCgroup* const group = cgroup ? &*cgroup : nullptr;
  // The program may load the recorder by itself, as the Python package does: it is to know, too.
  if (options.in_force().mode == Mode::off)
    return exit_code_of(run_it(options, path, options.settings(), group).wait_status);
  const std::string why_not = unsuitability(path);
  if (!why_not.empty()) {
    remark(fmt::format("{} {}; it runs without the recorder", printable(path), why_not));
    return exit_code_of(run_it(options, path, {}, group).wait_status);
  }
  const Settings settings = recording_settings(options);
  Watch watch;
  const std::uint64_t start_ns = realtime_now_ns();
  const auto look_at_gpus = [&] { tell_company_on_gpus(options.in_force(), start_ns); };
  watch.also(look_at_gpus);
  std::optional<LiveRun> live;
  if (options.live() && !is_screen_possible())
    remark("--live needs a terminal; the program runs without the view");
  else if (options.live())
    live.emplace();
  const Ended ended = run_it(options, path, settings, group, &watch, live ? &*live : nullptr);
  live.reset();
  look_at_gpus();
  const Watched watched = watch.ended(ended.wait_status);
  on_large_stack([&] {
    tell_the_end(ended, watched, {path, options.program(), settings, options.in_force()});
  });
  return exit_code_of(ended.wait_status);
}

}  // namespace oomrec::tools
