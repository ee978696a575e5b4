#include "tools/processes/launch/unrecorded_death.h"

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "common/text/expand.h"
#include "common/text/text.h"
#include "common/verdict/verdict.h"
#include "tools/base/directory.h"
#include "tools/base/text.h"
#include "tools/bundles/recover/dead_process.h"
#include "tools/bundles/recover/sessions.h"
#include "tools/bundles/store/source.h"
#include "tools/bundles/store/writing.h"
#include "tools/deaths/ending.h"
#include "tools/processes/launch/death_line.h"

namespace oomrec::tools::processes {
namespace {

namespace fs = std::filesystem;

std::string dump_directory_for(const ProgramFacts& facts, const Options& options) {
  char host[64] = {};
  gethostname(host, sizeof host - 1);
  char path[4096];
  if (!text::expand_path(options.dump_dir,
                         {facts.pid, host, facts.executable, facts.start_realtime_ns}, path,
                         sizeof path))
    return {};
  return absolute_path(path).lexically_normal();
}

// As a recorded process' death by a signal would be.
bool is_notable(const deaths::Ending& ending) {
  return ending.outcome == OutcomeKind::signal && !bundles::ended_as_usual(ending) &&
         ending.evidence.levels.resident_peak_bytes >= bundles::kNotableBytes;
}

bool is_worth_a_line(const deaths::Ending& ending, const deaths::DeathObservation& observed) {
  return ending.verdict == VerdictCode::crashed || ending.value == SIGKILL || observed.sender != 0;
}

}  // namespace

UnrecordedDeath report_unrecorded(const ProgramFacts& facts,
                                  const deaths::DeathObservation& observed,
                                  const Options& options) {
  const std::string why = why_unrecorded(facts);
  const std::string dumps = dump_directory_for(facts, options);
  const std::vector<fs::path> directories = bundles::session_directories({}, options.session_dir);
  const recording::Recording recording =
      recording_without_events(facts, why, directories.empty() ? "/" : directories.front(), dumps);
  const deaths::Ending ending = deaths::ending_of(recording.view(), observed);
  if (!ending.killed) return {};

  UnrecordedDeath death;
  const bool of_memory = verdict::is_death_caused_by_memory(ending.verdict);
  if (of_memory || is_notable(ending)) {
    bundle::Cause cause;
    cause.trigger = Trigger::killed;
    cause.outcome = ending.outcome;
    cause.outcome_value = ending.value;
    cause.alive = false;
    cause.end = &ending.evidence;
    const bundles::WriteResult written = bundles::write_bundle(
        recording, cause, dumps, {options.max_dumps, options.max_total_mb << 20});
    death.bundle = written.bundle;
    death.problem = written.problem;
  }
  if (of_memory) {
    if (!death.bundle.empty()) death.line = death_line_of(bundles::open_recorded(death.bundle));
    return death;
  }
  if (!is_worth_a_line(ending, observed)) return death;
  std::string line = death_line_of(recording, ending);
  if (observed.sender != 0)
    line += fmt::format("; the signal came from process {}", observed.sender);
  death.line = fmt::format("{}; not recorded: {}", line, printable(why));
  return death;
}

}  // namespace oomrec::tools::processes
