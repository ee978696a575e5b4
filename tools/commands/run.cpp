// `oomrec run`: starts a program with the recorder, waits for it, and reports how it ended.
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

// Runs the program, in its cgroup and under the live view if they are requested.
processes::Ended run_under(const processes::RunOptions& options, const std::string& path,
                           const processes::Settings& settings,
                           const processes::ProgramCgroup* cgroup,
                           deaths::DeathObserver* observer = nullptr,
                           views::LiveRun* live = nullptr) {
  processes::AtStart at_start;
  at_start.before_exec = [&] {
    return (cgroup == nullptr || cgroup->enter()) && (live == nullptr || live->attach_child());
  };
  if (live != nullptr) at_start.started = [live](pid_t program) { live->started(program); };
  if (cgroup == nullptr)
    return processes::run_program(path, options.program(), settings, observer, at_start);
  const Options& in_force = options.in_force();
  const processes::CgroupLimitGuard guard{*cgroup, in_force};
  return processes::run_program(path, options.program(), settings, observer, at_start);
}

// An error must not stop the program.
void write_gpu_processes(const Options& options, std::uint64_t start_ns) noexcept try {
  processes::write_gpu_processes(bundles::dump_directories(options.dump_dir), start_ns);
} catch (const std::exception& error) {
  remark(error.what());
}

}  // namespace

int run_command(const Words& words) {
  processes::RunOptions options;
  if (!options.parse(words)) return code(Exit::shown);

  if (!options.in_force().quiet) processes::report_unknown_variables();
  const std::string path = processes::find_program(options.program().front());
  // Kept until the end is explained, which reads its counters.
  std::optional<processes::ProgramCgroup> cgroup;
  if (options.cgroup_bytes() != 0) cgroup.emplace(options.cgroup_bytes());
  const processes::ProgramCgroup* const group = cgroup ? &*cgroup : nullptr;
  // The settings still apply: the program may load the recorder itself, as the Python package does.
  if (options.in_force().mode == Mode::off)
    return processes::exit_code_of(run_under(options, path, options.settings(), group).wait_status);
  const std::string why_not = processes::why_unrecordable(path);
  if (!why_not.empty()) {
    remark(fmt::format("{} {}; it runs without the recorder", printable(path), why_not));
    return processes::exit_code_of(run_under(options, path, {}, group).wait_status);
  }
  const processes::Settings settings = processes::recording_settings(options);
  deaths::DeathObserver observer;
  const std::uint64_t start_ns = bundles::realtime_now_ns();
  const auto sample_gpus = [&] { write_gpu_processes(options.in_force(), start_ns); };
  observer.at_each_sample(sample_gpus);
  std::optional<views::LiveRun> live;
  if (options.live() && !views::is_screen_possible())
    remark("--live needs a terminal; the program runs without the view");
  else if (options.live())
    live.emplace();
  const processes::Ended ended =
      run_under(options, path, settings, group, &observer, live ? &*live : nullptr);
  live.reset();
  sample_gpus();
  const deaths::DeathObservation observed = observer.ended(ended.wait_status);
  on_large_stack([&] {
    processes::report_exit(ended, observed,
                           {path, options.program(), settings, options.in_force()});
  });
  return processes::exit_code_of(ended.wait_status);
}

}  // namespace oomrec::tools::commands
