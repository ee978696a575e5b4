#include "tools/processes/supervise/unrecorded_death.h"

#include <fmt/format.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <memory>

#include "common/program/suitability.h"
#include "common/system/files.h"
#include "common/system/text.h"
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
#include "tools/processes/supervise/death_line.h"
#include "tools/recording/reading/image.h"

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

using recording::Image;

void describe_machine(session::Header& header) {
  system::boot_id(header.boot_id);
  header.pid_namespace = system::pid_namespace();
  utsname names{};
  if (uname(&names) == 0) system::Text{header.host} << names.nodename;
  struct sysinfo memory {};
  if (sysinfo(&memory) != 0) return;
  header.ram_bytes = std::uint64_t{memory.totalram} * memory.mem_unit;
  header.swap_bytes = std::uint64_t{memory.totalswap} * memory.mem_unit;
}

// The kernel's log names a task, which may have another name than its program.
void add_thread(Image& image, const ProgramFacts& facts) {
  session::Thread thread{};
  thread.tid = facts.pid;
  system::Text{thread.name} << facts.name;
  image.add(session::TableId::threads, thread);
}

std::string why_unrecorded(const ProgramFacts& facts) {
  const std::string program{text::base_name(facts.executable)};
  const bool is_path = facts.executable.starts_with('/');
  const program::Suitability found = is_path
                                         ? program::inspect(facts.executable.c_str()).suitability
                                         : program::Suitability::suitable;
  if (found != program::Suitability::suitable)
    return fmt::format("{} {}", program, program::meaning_of(found));
  if (facts.is_preloaded && !*facts.is_preloaded)
    return program + " had no LD_PRELOAD that names the recorder";
  if (facts.user && facts.user->user != geteuid())
    return fmt::format("{} was user {}'s, of whose recordings none was found", program,
                       facts.user->user);
  return program + " left no recording";
}

recording::Recording recording_without_events(const ProgramFacts& facts, const std::string& why,
                                              const std::filesystem::path& directory,
                                              const std::string& dump_directory) {
  Image image;
  add_thread(image, facts);
  const session::StringId executable = image.string(facts.executable);
  const session::StringId arguments = image.string(facts.arguments);
  const session::StringId working_directory = image.string(facts.working_directory);
  const session::StringId dumps = image.string(dump_directory);
  const session::StringId off_reason = image.string(why);
  const session::StringId cgroup = image.string(facts.cgroup.own);
  const session::StringId cgroup_path = image.string(facts.cgroup.named);
  session::Header& header = image.header();
  header.state = static_cast<session::u32>(session::State::running);
  header.pid = facts.pid;
  header.parent_pid = facts.parent_pid;
  header.start_ticks = facts.start_ticks;
  header.start_realtime_ns = facts.start_realtime_ns;
  header.start_monotonic_ns = facts.start_monotonic_ns;
  header.last_tick_ns = facts.start_monotonic_ns;
  system::Text{header.oomrec_version} << OOMREC_VERSION;
  describe_machine(header);
  header.executable = executable;
  header.command_line = arguments;
  header.working_directory = working_directory;
  header.dump_directory = dumps;
  header.off_reason = off_reason;
  header.cgroup = cgroup;
  header.cgroup_path = cgroup_path;
  header.mode = static_cast<std::uint8_t>(Mode::off);
  header.mode_now = static_cast<session::u32>(Mode::off);
  std::memcpy(static_cast<void*>(&header.health), static_cast<const void*>(facts.health.get()),
              sizeof header.health);
  std::uint64_t bytes = 0;
  Image::Bytes session = image.finish(bytes);
  return recording::Recording{directory / fmt::format("{}", facts.pid),
                              std::shared_ptr<const std::byte>{std::move(session)}, bytes};
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
