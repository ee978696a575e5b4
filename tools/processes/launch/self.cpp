#include "tools/processes/launch/self.h"

#include <filesystem>

#include "tools/base/large_stack.h"
#include "tools/processes/launch/exit_report.h"
#include "tools/processes/launch/recorded.h"

namespace oomrec::tools::processes {

Ended run_self(const std::vector<std::string>& options, const std::vector<std::string>& words,
               const Settings& further) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  std::vector<std::string> line = options;
  line.insert(line.end(), {"--", self});
  line.insert(line.end(), words.begin(), words.end());

  RunOptions run;
  run.parse(line);
  Settings settings = recording_settings(run);
  settings.insert(settings.end(), further.begin(), further.end());
  deaths::Watch watch;
  const Ended ended = run_program(self, run.program(), settings, &watch);
  const deaths::Watched watched = watch.ended(ended.wait_status);
  on_large_stack([&] {
    tell_the_end(ended, watched, {self, run.program(), settings, run.in_force()});
  });
  return ended;
}

}  // namespace oomrec::tools::processes
