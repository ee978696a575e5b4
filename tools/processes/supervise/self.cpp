#include "tools/processes/supervise/self.h"

#include <filesystem>

#include "tools/bundles/store/bundles.h"
#include "tools/processes/launch/recorded.h"
#include "tools/processes/supervise/exit_report.h"

namespace oomrec::tools::processes {

SelfEnded run_self(const SelfRun& run) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  std::vector<std::string> line = run.options;
  line.insert(line.end(), {"--", self});
  line.insert(line.end(), run.words.begin(), run.words.end());

  RunOptions options;
  options.parse(line, run.environment);
  const Settings settings = recording_settings(options);
  deaths::DeathObserver observer{run.kernel_log};
  ProgramSampler sampler{self, options.program(), options.in_force().arguments};
  AtStart at_start;
  at_start.started = [&](pid_t program) { sampler.started(program); };
  const Ended ended = run_program(self, options.program(), settings, &observer, at_start);
  const deaths::DeathObservation observed = observer.ended(ended.wait_status);
  ExitReports{{self, options.program(), settings, options.in_force(), sampler.facts(),
               sampler.descendants()}}
      .report(ended, observed);
  return {ended, bundles::dump_directories(options.in_force().dump_dir)};
}

}  // namespace oomrec::tools::processes
