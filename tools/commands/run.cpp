// `oomrec run`: starts a program with the recorder, waits for it, and reports how it ended.
#include <fmt/format.h>
#include <sys/resource.h>

#include <optional>
#include <string>

#include "tools/base/programs.h"
#include "tools/base/terminal.h"
#include "tools/base/text.h"
#include "tools/bundles/store/bundles.h"
#include "tools/bundles/store/outcome.h"
#include "tools/commands/commands.h"
#include "tools/processes/gpus/gpu_processes.h"
#include "tools/processes/launch/cgroup.h"
#include "tools/processes/launch/options.h"
#include "tools/processes/launch/process.h"
#include "tools/processes/launch/recorded.h"
#include "tools/processes/supervise/exit_report.h"
#include "tools/processes/supervise/program_facts.h"
#include "tools/service/fleet/lives.h"
#include "tools/views/live_run/live_run.h"
#include "tools/views/screen/screen.h"

namespace oomrec::tools::commands {
namespace {

// What the recorder would do in the program. There it adds its own memory.
bool limit_address_space(std::uint64_t bytes) {
  const rlimit limit{bytes, bytes};
  return bytes == 0 || setrlimit(RLIMIT_AS, &limit) == 0;
}

// How the program is run. Pointers may be null.
struct RunContext {
  const processes::ProgramCgroup* cgroup = nullptr;
  std::uint64_t address_space_bytes = 0;  // 0: no limit of ours
  deaths::DeathObserver* observer = nullptr;
  processes::ProgramSampler* sampler = nullptr;
  processes::ExitReports* reports = nullptr;
  const processes::LowOomScore* oom_score = nullptr;
  views::LiveRun* live = nullptr;
};

processes::Ended run_in(const RunContext& context, const processes::RunOptions& options,
                        const std::string& path, const processes::Settings& settings) {
  processes::AtStart at_start;
  at_start.before_exec = [&] {
    if (context.oom_score != nullptr) context.oom_score->restore();
    return (context.cgroup == nullptr || context.cgroup->enter()) &&
           limit_address_space(context.address_space_bytes) &&
           (context.live == nullptr || context.live->attach_child());
  };
  at_start.started = [&](pid_t program) {
    if (context.sampler != nullptr) context.sampler->started(program);
    if (context.cgroup != nullptr && context.observer != nullptr)
      context.observer->watch(
          {context.sampler->facts().cgroup.own, context.sampler->facts().cgroup.named});
    if (context.live != nullptr) context.live->started(program);
  };
  if (context.reports != nullptr)
    at_start.is_own = [&](pid_t child, int status) {
      return context.reports->is_own(child, status);
    };
  if (context.sampler != nullptr) at_start.ended = [&] { context.sampler->sample(); };
  const auto run = [&] {
    return processes::run_program(path, options.program(), settings, context.observer, at_start);
  };
  if (context.cgroup == nullptr) return run();
  const processes::CgroupLimitGuard guard{*context.cgroup, options.in_force()};
  return run();
}

void report_unrecordable(const std::string& path, const std::string& why,
                         bool preloads_its_children, const Options& options) {
  remark(fmt::format("{} {}; it runs without the recorder{}", printable(path), why,
                     preloads_its_children ? ", which is in what it starts" : ""));
  const std::string without_effect = processes::options_without_effect(options);
  if (!without_effect.empty()) remark(without_effect);
}

// Of options that lost their effect when the program executed another one.
void report_lost_effect(const processes::ProgramFacts& program, const Options& options) {
  if (!program.executable.starts_with('/')) return;  // not known
  const std::string why_not = processes::why_unrecordable(program.executable);
  const std::string without_effect = processes::options_without_effect(options);
  if (why_not.empty()) return;
  remark(fmt::format("not recorded: the program has executed {}, which {}",
                     printable(program.executable), why_not));
  if (!without_effect.empty()) remark(without_effect);
}

// An error must not stop the program.
void write_gpu_processes(const Options& options, std::uint64_t start_ns) noexcept try {
  processes::write_gpu_processes(bundles::dump_directories(options.dump_dir), start_ns);
} catch (const std::exception& error) {
  remark(error.what());
}

// Writes rows of the program and its descendants that end well (OOMREC_LIFE_ROWS).
class LifeRows {
 public:
  LifeRows(const Options& options, const processes::Settings& settings)
      : lives_(service::Lives::from_environment()), options_(options) {
    for (const auto& [name, value] : settings)
      if (name == kProcessTreeVariable) tree_ = value;
  }

  // An error must not stop the program.
  void update(pid_t program) noexcept try {
    if (!lives_) return;
    lives_->update(
        bundles::sessions_of(bundles::dump_directories(options_.dump_dir), options_.session_dir),
        tree_, program);
  } catch (const std::exception& error) {
    remark(error.what());
  }
  void on_end(const processes::Ended& ended) {
    if (!lives_) return;
    lives_->on_end_of(ended.pid, ended.wait_status);
    update(0);
  }

 private:
  std::optional<service::Lives> lives_;
  const Options& options_;
  std::string tree_;
};

}  // namespace

int run_command(const Words& words) {
  processes::RunOptions options;
  if (!options.parse(words)) return code(Exit::shown);

  if (!options.in_force().quiet) {
    processes::report_unknown_variables();
    const std::string no_dumps = processes::dump_directory_problem(options.in_force());
    if (!no_dumps.empty()) remark(no_dumps);
  }
  const std::string path = processes::find_program(options.program().front());
  // Kept until the end is explained, which reads its counters.
  std::optional<processes::ProgramCgroup> cgroup;
  if (options.cgroup_bytes() != 0) cgroup.emplace(options.cgroup_bytes());
  const processes::LowOomScore oom_score;
  RunContext context;
  context.oom_score = &oom_score;
  if (cgroup) context.cgroup = &*cgroup;
  // The settings still apply: the program may load the recorder itself, as the Python package does.
  if (options.in_force().mode == Mode::off)
    return exit_code_of(run_in(context, options, path, options.settings()).wait_status);
  const std::string why_not = processes::why_unrecordable(path);
  const bool is_recorded = why_not.empty();
  const bool passes_on = !is_recorded && processes::preloads_its_children(path);
  if (!is_recorded) {
    if (!options.in_force().quiet)
      report_unrecordable(path, why_not, passes_on, options.in_force());
    context.address_space_bytes = options.in_force().limit_as;
  }
  const processes::Settings settings =
      is_recorded || passes_on ? processes::recording_settings(options) : processes::Settings{};
  deaths::DeathObserver observer;
  processes::ProgramSampler sampler{path, options.program(), options.in_force().arguments};
  const std::uint64_t start_ns = bundles::realtime_now_ns();
  const auto sample_gpus = [&] { write_gpu_processes(options.in_force(), start_ns); };
  processes::ExitReports reports{{path, options.program(), settings, options.in_force(),
                                  sampler.facts(), sampler.descendants()}};
  LifeRows lives{options.in_force(), settings};
  std::optional<views::LiveRun> live;
  if (options.live() && !views::is_screen_possible())
    remark("--live needs a terminal; the program runs without the view");
  else if (options.live() && is_recorded)
    live.emplace();
  observer.at_each_sample([&] {
    sampler.sample();
    sample_gpus();
    lives.update(sampler.facts().pid);
    if (!live) reports.sample(observer);  // the view has the terminal
    observer.set_helper(reports.child());
  });
  context.observer = &observer;
  context.reports = &reports;
  context.sampler = &sampler;
  context.live = live ? &*live : nullptr;
  const processes::Ended ended = run_in(context, options, path, settings);
  live.reset();
  sample_gpus();
  const deaths::DeathObservation observed = observer.ended(ended.wait_status);
  lives.on_end(ended);
  if (is_recorded && !options.in_force().quiet)
    report_lost_effect(sampler.facts(), options.in_force());
  reports.report(ended, observed);
  return exit_code_of(ended.wait_status);
}

}  // namespace oomrec::tools::commands
