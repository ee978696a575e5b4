#include "tools/views/info/setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "tools/base/error.h"
#include "tools/base/text.h"
#include "tools/processes/launch/library.h"
#include "tools/processes/launch/python.h"
#include "tools/processes/launch/recorded.h"
#include "tools/processes/observe/observed.h"

namespace oomrec::tools::views {
namespace {

ProgramCheck check_of(const std::vector<std::string>& words) {
  processes::RunOptions options;
  std::vector<std::string> run_words = {"--"};
  run_words.insert(run_words.end(), words.begin(), words.end());
  options.parse(run_words);
  ProgramCheck check;
  check.program = processes::find_program(options.program().front());
  check.why_not = processes::why_unrecordable(check.program);
  if (!check.recorded()) return check;

  check.facts =
      processes::facts_of(check.program, options.program(), processes::recording_settings(options));
  check.python = processes::python_support(check.facts);
  const auto recorder =
      std::find_if(check.facts.begin(), check.facts.end(),
                   [](const processes::Fact& fact) { return fact.name == "recorder"; });
  if (recorder == check.facts.end()) {
    check.why_not =
        "was started, but the recorder did not report: the loader left it out, or a sandbox "
        "stopped it";
  } else if (recorder->active == false) {
    check.why_not = fmt::format("is not recorded: {}", recorder->detail);
  }
  return check;
}

// The hooks in a small program, started here: a hook that is inactive in it is inactive in every
// program. Limits and directories have their own sections.
std::vector<processes::Fact> hooks() {
  try {
    std::vector<processes::Fact> facts = check_of({"true"}).facts;
    std::erase_if(facts, [](const processes::Fact& fact) {
      return fact.name.ends_with("_limit") || fact.name == "bundles" || fact.name == "library";
    });
    return facts;
  } catch (const Error&) {
    return {};  // no program `true`, or no library, which directories() reports
  }
}

std::string library_or_empty() {
  try {
    return processes::find_library();
  } catch (const Error&) {
    return {};
  }
}

std::vector<Directory> directories() {
  processes::RunOptions options;
  options.parse({"--", "info"});
  const Options& in_force = options.in_force();
  const auto absolute = [](const char* path) {
    return *path != '\0' ? std::filesystem::absolute(path).lexically_normal().string()
                         : std::string{};
  };
  return {{"bundles", absolute(in_force.dump_dir), ""},
          {"recordings", absolute(in_force.session_dir), "/dev/shm, or the temporary directory"},
          {"library", library_or_empty(), "not found: set OOMREC_LIBRARY"}};
}

// The limits that the environment sets for the recorder, then those of the system.
std::vector<processes::SystemLimit> limits() {
  processes::RunOptions options;
  options.parse({"--", "info"});
  const Options& in_force = options.in_force();
  std::vector<processes::SystemLimit> limits;
  if (in_force.limit != 0) limits.push_back({"soft", in_force.limit});
  if (*in_force.limit_gpu != '\0') {
    for (const std::string_view item : split(in_force.limit_gpu, ',')) {
      const std::size_t at = item.find('@');
      processes::SystemLimit limit{"device", 0};
      if (at != item.npos) limit.name += fmt::format(" {}", item.substr(at + 1));
      if (parse_size(item.substr(0, at), limit.bytes)) limits.push_back(limit);
    }
  }
  const std::vector<processes::SystemLimit> of_system = processes::limits_in_force();
  limits.insert(limits.end(), of_system.begin(), of_system.end());
  return limits;
}

// The system with all its GPUs, or with only the one that --device names.
processes::SystemFacts system_of(const std::string& device) {
  processes::SystemFacts system = processes::system_facts();
  const processes::DeviceChoice choice = processes::DeviceChoice::of(device);
  if (choice.kind == processes::DeviceChoice::Kind::any) return system;
  processes::observe_machine(choice);  // throws if there is no such device
  std::erase_if(system.gpus, [&](const processes::SystemGpu& gpu) {
    return choice.kind == processes::DeviceChoice::Kind::host ||
           gpu.index != static_cast<unsigned>(choice.ordinal);
  });
  return system;
}

processes::PythonFacts python_of(Detail detail) {
  using processes::PythonDetail;
  return processes::python_facts(detail == Detail::all ? PythonDetail::packages
                                                       : PythonDetail::version);
}

}  // namespace

Setup setup_for_program(const std::vector<std::string>& words) {
  std::vector<processes::SystemLimit> in_force = limits();
  ProgramCheck check = check_of(words);
  return {std::move(in_force), directories(), std::move(check), {}};
}

Setup setup_of_machine(const std::string& device, Detail detail) {
  std::vector<processes::SystemLimit> in_force = limits();
  Machine machine{system_of(device), python_of(detail), hooks()};
  return {std::move(in_force), directories(), {}, std::move(machine)};
}

}  // namespace oomrec::tools::views
