#include "tools/processes/supervise/program_facts.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "common/limits/health.h"
#include "common/session/secrets.h"
#include "common/system/files.h"
#include "common/text/text.h"
#include "tools/base/proc.h"
#include "tools/base/text.h"
#include "tools/bundles/store/outcome.h"

namespace oomrec::tools::processes {
namespace {

namespace fs = std::filesystem;

std::string path_in_proc(pid_t pid, const char* file) {
  return fmt::format("{}/{}/{}", system::g_roots.proc, pid, file);
}

std::string link_of(pid_t pid, const char* file) {
  std::error_code error;
  return fs::read_symlink(path_in_proc(pid, file), error);
}

}  // namespace

ProgramSampler::ProgramSampler(const std::string& path, const std::vector<std::string>& words,
                               RecordedArguments recorded)
    : recorded_(recorded) {
  constexpr std::size_t kNameBytes = 15;
  std::error_code error;
  facts_.executable = fs::canonical(path, error);
  name_of_image_ = text::base_name(path).substr(0, kNameBytes);
  std::string arguments;
  for (const std::string& word : words) arguments += word + '\0';
  facts_.arguments = recorded_part(std::move(arguments));
  facts_.working_directory = fs::current_path(error);
}

// As the recorder would record them.
std::string ProgramSampler::recorded_part(std::string arguments) const {
  if (recorded_ == RecordedArguments::all) return mask_secrets(std::move(arguments));
  arguments.resize(session::keep_names(arguments.data(), arguments.size()));
  return arguments;
}

void ProgramSampler::started(pid_t program) {
  facts_.pid = program;
  facts_.parent_pid = getpid();
  facts_.start_ticks = system::start_ticks(program);
  facts_.start_monotonic_ns = system::monotonic_ns();
  facts_.start_realtime_ns = bundles::realtime_now_ns();
  descendants_.started(program);
  sample();
}

void ProgramSampler::sample() {
  if (facts_.pid == 0) return;
  if (const std::optional<User> user = user_of(facts_.pid)) facts_.user = user;
  facts_.name = process_file(facts_.pid, "comm", system::g_roots.proc);
  if (facts_.name.ends_with('\n')) facts_.name.pop_back();
  const std::string executable = link_of(facts_.pid, "exe");
  if (!executable.empty()) {
    read_image(executable);
    read_health();
  } else if (!facts_.name.empty() && facts_.name != name_of_image_) {
    // It has become another program since, and has ended.
    facts_.executable = name_of_image_ = facts_.name;
    facts_.is_preloaded.reset();
  }
  descendants_.sample(facts_.cgroup.own);
}

void ProgramSampler::read_image(const std::string& executable) {
  constexpr std::string_view kLibrary = "liboomrec.so";
  facts_.executable = executable;
  name_of_image_ = facts_.name;
  facts_.working_directory = link_of(facts_.pid, "cwd");
  facts_.arguments = recorded_part(process_file(facts_.pid, "cmdline", system::g_roots.proc));
  facts_.is_preloaded.reset();
  if (std::ifstream{path_in_proc(facts_.pid, "environ")})  // it may be read
    facts_.is_preloaded =
        process_file(facts_.pid, "environ", system::g_roots.proc).find(kLibrary) !=
        std::string::npos;
}

void ProgramSampler::read_health() {
  const InHook outside = OutsideHooks::in_hook();
  session::Health& health = *facts_.health;
  limit::Ceilings ceilings;
  limit::read_cgroup(outside, ceilings, &facts_.cgroup, facts_.pid);
  health.cgroup_limit_bytes = ceilings.cgroup_limit_bytes;
  health.cgroup_used_bytes = ceilings.cgroup_used_bytes;
  limit::read_quick_health(outside, facts_.cgroup, health, facts_.pid);
  limit::read_slow_health(outside, facts_.cgroup, health, facts_.pid);
  health.time_ns = system::monotonic_ns();
}

}  // namespace oomrec::tools::processes
