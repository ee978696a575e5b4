// `oomrec run`: starts a program with the recorder, waits for it, and tells what became of it.
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <optional>

#include "tools/base/large_stack.h"
#include "tools/base/log.h"
#include "tools/base/text.h"
#include "tools/bundles/store/bundles.h"
#include "tools/bundles/store/outcome.h"
#include "tools/commands/commands.h"
#include "tools/processes/gpus/gpu_processes.h"
#include "tools/processes/launch/cgroup.h"
#include "tools/processes/launch/cgroup_limit_guard.h"
#include "tools/processes/launch/exit_report.h"
#include "tools/processes/launch/options.h"
#include "tools/processes/launch/process.h"
#include "tools/processes/launch/recorded.h"
#include "tools/views/live_run/live_run.h"
#include "tools/views/screen/screen.h"

namespace oomrec::tools::commands {

namespace {

// The program, in its cgroup where one was asked for, and under the live view.
processes::Ended run_it(const processes::RunOptions& options, const std::string& path,
                        const processes::Settings& settings, const processes::ProgramCgroup* cgroup,
                        deaths::Watch* watch = nullptr, views::LiveRun* live = nullptr) {
  processes::AtStart at_start;
  at_start.before_exec = [&] {
    return (cgroup == nullptr || cgroup->enter()) && (live == nullptr || live->in_child());
  };
  if (live != nullptr) at_start.started = [live](pid_t program) { live->started(program); };
  if (cgroup == nullptr)
    return processes::run_program(path, options.program(), settings, watch, at_start);
  const Options& in_force = options.in_force();
  if (in_force.session_dir[0] != '\0') setenv("OOMREC_SESSION_DIR", in_force.session_dir, 1);
  const processes::BrinkWatch brink{
      *cgroup, {std::filesystem::absolute(in_force.dump_dir)}, in_force.quiet};
  return processes::run_program(path, options.program(), settings, watch, at_start);
}

// Whatever goes wrong, the program goes on.
void tell_company_on_gpus(const Options& options, std::uint64_t start_ns) noexcept try {
  processes::tell_gpu_processes(bundles::dump_directories(options.dump_dir), start_ns);
} catch (const std::exception& error) {
  remark(error.what());
}

}  // namespace

int run_command(const Words& words) {
  processes::RunOptions options;
  if (!options.parse(words)) return code(Exit::shown);

  if (!options.in_force().quiet) processes::tell_unknown_variables();
  const std::string path = processes::find_program(options.program().front());
  std::optional<processes::ProgramCgroup>
      cgroup;  // until its end has been explained: its counters tell
  if (options.cgroup_bytes() != 0) cgroup.emplace(options.cgroup_bytes());
  const processes::ProgramCgroup* const group = cgroup ? &*cgroup : nullptr;
  // The program may load the recorder by itself, as the Python package does: it is to know, too.
  if (options.in_force().mode == Mode::off)
    return processes::exit_code_of(run_it(options, path, options.settings(), group).wait_status);
  const std::string why_not = processes::unsuitability(path);
  if (!why_not.empty()) {
    remark(fmt::format("{} {}; it runs without the recorder", printable(path), why_not));
    return processes::exit_code_of(run_it(options, path, {}, group).wait_status);
  }
  const processes::Settings settings = processes::recording_settings(options);
  deaths::Watch watch;
  const std::uint64_t start_ns = bundles::realtime_now_ns();
  const auto look_at_gpus = [&] { tell_company_on_gpus(options.in_force(), start_ns); };
  watch.also(look_at_gpus);
  std::optional<views::LiveRun> live;
  if (options.live() && !views::is_screen_possible())
    remark("--live needs a terminal; the program runs without the view");
  else if (options.live())
    live.emplace();
  const processes::Ended ended =
      run_it(options, path, settings, group, &watch, live ? &*live : nullptr);
  live.reset();
  look_at_gpus();
  const deaths::Watched watched = watch.ended(ended.wait_status);
  on_large_stack([&] {
    processes::tell_the_end(ended, watched,
                            {path, options.program(), settings, options.in_force()});
  });
  return processes::exit_code_of(ended.wait_status);
}

}  // namespace oomrec::tools::commands
