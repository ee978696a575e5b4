// The work of `oomrec run` when processes of its program have died: completes bundles, recovers
// recordings and reports both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "common/options/options.h"
#include "tools/processes/launch/process.h"
#include "tools/processes/supervise/program_facts.h"
#include "tools/processes/supervise/report_process.h"

namespace oomrec::tools::processes {

struct Launched {
  const std::string& path;
  const std::vector<std::string>& words;
  const Settings& settings;
  const Options& options;
  const ProgramFacts& facts;
  const Descendants& descendants;
};

class ExitReports {
 public:
  // What `launched` refers to must outlive this.
  explicit ExitReports(const Launched& launched);

  // While the program runs, at each sample of its observer: reports its processes that have died,
  // as the workers of a server do weeks before it ends.
  void sample(const deaths::DeathObserver& observer);

  // The report that runs; 0: none.
  pid_t child() const { return process_.child(); }

  // A child has been waited for. True: it was a report.
  bool is_own(pid_t child, int wait_status);

  // After the program's end. Completes the program's bundles with its outcome. If it was killed,
  // makes and reports a bundle of its recording, or one without events if it has no recording. Says
  // in one line what ended each process that died for lack of memory. Also reports a limit too low
  // to reach main. Never fails: the program's exit code must be returned. `observed`: what the
  // observer recorded of the same end.
  void report(const Ended& ended, const deaths::DeathObservation& observed) noexcept;

 private:
  std::set<std::filesystem::path> new_dead();
  void end_report(bool is_complete);
  void say_sum();
  void report_exit(const Ended& ended, const deaths::DeathObservation& observed,
                   ReportProgress& progress) const;

  const Launched launched_;
  ReportProcess process_;
  std::set<std::filesystem::path> examined_;  // recordings of dead processes
  std::set<std::filesystem::path> in_hand_;   // of the report that runs
  std::set<pid_t> recorded_;                  // processes that were reported while the program ran
  std::set<pid_t> told_;                      // whose report was killed after their death was said
  unsigned failed_reports_ = 0;               // one after the other
  std::size_t ended_before_ = 0;              // of the program's descendants, at the last sample
  std::uint64_t next_report_ns_ = 0, next_sum_ns_ = 0;
};

}  // namespace oomrec::tools::processes
