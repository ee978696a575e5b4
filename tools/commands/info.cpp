// `oomrec info`: is a program recorded, and if not, why; which limits and directories are in force.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "tools/base/arguments.h"
#include "tools/base/json.h"
#include "tools/base/terminal.h"
#include "tools/base/text.h"
#include "tools/commands/commands.h"
#include "tools/processes/launch/facts.h"
#include "tools/processes/launch/library.h"
#include "tools/processes/launch/python.h"
#include "tools/processes/launch/recorded.h"
#include "tools/processes/observe/observed.h"
#include "tools/processes/system/system.h"

namespace oomrec::tools::commands {
namespace {

constexpr const char* kExamples =
    "  oomrec info                      system, devices, Python, limits, hooks, directories\n"
    "  oomrec info --detailed --device 0\n"
    "  oomrec info -- python train.py   would it be recorded? (stopped before its main)\n"
    "  oomrec info --json -- ./server\n"
    "\n"
    "Exit code 1: the program would not be recorded.\n";

struct Answer {
  std::string program;  // empty: none was asked about
  std::string why_not;  // empty: it is recorded
  std::string python;
  std::vector<processes::Fact> facts;

  bool recorded() const { return why_not.empty(); }
};

Answer ask(const Words& words) {
  processes::RunOptions options;
  Words as_run = {"--"};
  as_run.insert(as_run.end(), words.begin(), words.end());
  options.parse(as_run);
  Answer answer;
  answer.program = processes::find_program(options.program().front());
  answer.why_not = processes::unsuitability(answer.program);
  if (!answer.recorded()) return answer;

  answer.facts = processes::facts_of(answer.program, options.program(),
                                     processes::recording_settings(options));
  answer.python = processes::python_support(answer.facts);
  const auto recorder =
      std::find_if(answer.facts.begin(), answer.facts.end(),
                   [](const processes::Fact& fact) { return fact.name == "recorder"; });
  if (recorder == answer.facts.end()) {
    answer.why_not =
        "was started, but the recorder did not report: the loader left it out, or a sandbox "
        "stopped it";
  } else if (recorder->active == false) {
    answer.why_not = fmt::format("is not recorded: {}", recorder->detail);
  }
  return answer;
}

// What the recorder sees of a small program here: hooks that are off for it are off for all. Limits
// and directories have their own lines.
std::vector<processes::Fact> hooks() {
  try {
    std::vector<processes::Fact> facts = ask({"true"}).facts;
    std::erase_if(facts, [](const processes::Fact& fact) {
      return fact.name.ends_with("_limit") || fact.name == "bundles" || fact.name == "library";
    });
    return facts;
  } catch (const Error&) {
    return {};  // no such program, or no library: the directories tell
  }
}

std::string library_or_nothing() {
  try {
    return processes::find_library();
  } catch (const Error&) {
    return {};
  }
}

struct Directory {
  std::string name;
  std::string path;        // empty: none was named
  const char* by_default;  // what holds then
};

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
          {"library", library_or_nothing(), "not found: set OOMREC_LIBRARY"}};
}

// Those that the environment asks the recorder for, and those of the system.
std::vector<processes::SystemLimit> limits() {
  processes::RunOptions options;
  options.parse({"--", "info"});
  const Options& asked = options.in_force();
  std::vector<processes::SystemLimit> limits;
  if (asked.limit != 0) limits.push_back({"soft", asked.limit});
  if (*asked.limit_gpu != '\0') {
    for (const std::string_view item : split(asked.limit_gpu, ',')) {
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

// A size, or sizes by device as they were given.
std::string limit_text(const std::string& text) {
  std::uint64_t bytes = 0;
  return parse_size(text, bytes) ? size_text(bytes) : printable(text);
}

void print_facts(const std::vector<processes::Fact>& facts) {
  for (const processes::Fact& fact : facts) {
    const std::string word = !fact.active ? "" : *fact.active ? "yes" : "no";
    const bool is_limit = fact.name.ends_with("_limit") && fact.active;
    const std::string detail = !is_limit       ? printable(fact.detail)
                               : !*fact.active ? "none"
                                               : limit_text(fact.detail);
    if (word.empty() && detail.empty()) continue;
    fmt::print("  {:<20} {:<4} {}\n", fact.name, word, clip(detail, kColumns - 28));
  }
}

void print_answer(const Answer& answer, const Terminal& terminal) {
  fmt::print("{:<12} {}\n", "program", printable(answer.program));
  if (!answer.recorded()) {
    fmt::print("{:<12} {}: {} {}\n\n", "recorded", terminal.paint(Colour::red, "no"),
               printable(answer.program), answer.why_not);
    return;
  }
  fmt::print("{:<12} {}\n", "recorded", terminal.paint(Colour::green, "yes"));
  print_facts(answer.facts);
  fmt::print("{:<12} {}\n\n", "python",
             answer.python.empty() ? "not a Python program" : answer.python);
}

// The machine, for who asks about no program.
struct Surroundings {
  processes::SystemFacts system;
  processes::PythonFacts python;
  std::vector<processes::Fact> hooks;
};

void print_row(std::string_view name, const std::string& value) {
  fmt::print("  {:<14} {}\n", name, value);
}

void print_system(const Surroundings& around, bool detailed) {
  const processes::SystemFacts& system = around.system;
  fmt::print("system\n");
  print_row("platform", fmt::format("{} {}", system.platform, system.architecture));
  print_row("CPUs", system.cpus == system.cpus_logical
                        ? count_text(system.cpus)
                        : fmt::format("{} of {}", system.cpus, system.cpus_logical));
  print_row("memory", fmt::format("{} of {} available", size_text(system.memory_available),
                                  size_text(system.memory_total)));
  if (detailed) {
    print_row("swap", fmt::format("{} of {} free", size_text(system.swap_free),
                                  size_text(system.swap_total)));
    print_row("C library", system.libc);
    print_row("oomrec", OOMREC_VERSION);
  }
  fmt::print("\ndevices ({})\n", system.backend);
  if (system.gpus.empty()) fmt::print("  none that NVML tells of\n");
  for (const processes::SystemGpu& gpu : system.gpus) {
    print_row(fmt::format("cuda:{}", gpu.index),
              fmt::format("{}  {} of {} used", gpu.name, size_text(gpu.used_bytes),
                          size_text(gpu.total_bytes)));
    if (detailed) print_row("", gpu.uuid);
  }
  if (detailed && !system.driver_version.empty()) print_row("driver", system.driver_version);
  fmt::print("\nPython\n");
  const processes::PythonFacts& python = around.python;
  print_row(python.path.empty() ? "none" : python.version, printable(python.path));
  for (const auto& [name, version] : python.packages.items())
    if (version.is_string()) print_row(name, printable(version.get<std::string>()));
  fmt::print("\nhooks\n");
  if (around.hooks.empty())
    fmt::print("  not known: no program could be started with the library\n");
  print_facts(around.hooks);
  fmt::print("\n");
}

void print_surroundings(const std::vector<processes::SystemLimit>& limits) {
  fmt::print("limits in force\n");
  if (limits.empty()) fmt::print("  none\n");
  for (const processes::SystemLimit& limit : limits)
    fmt::print("  {:<14} {}\n", limit.name, size_text(limit.bytes));
  fmt::print("\ndirectories\n");
  for (const Directory& directory : directories()) {
    fmt::print("  {:<12} {}\n", directory.name,
               !directory.path.empty() ? printable(directory.path) : directory.by_default);
  }
}

Json facts_json(const std::vector<processes::Fact>& facts) {
  Json rows = Json::array();
  for (const processes::Fact& fact : facts) {
    rows.push_back({{"fact", fact.name},
                    {"active", fact.active ? Json(*fact.active) : Json(nullptr)},
                    {"detail", text_or_null(fact.detail)}});
  }
  return rows;
}

// `around`: where no program was asked about.
Json answer_json(const Answer& answer, const std::optional<Surroundings>& around,
                 const std::vector<processes::SystemLimit>& limits) {
  Json rows = Json::array();
  for (const processes::SystemLimit& limit : limits)
    rows.push_back({{"kind", limit.name}, {"bytes", limit.bytes}});
  Json places = Json::object();
  for (const Directory& directory : directories())
    places[directory.name] = text_or_null(directory.path);
  const bool asked = !answer.program.empty();
  return {
      {"schema_version", 1},
      {"program", text_or_null(answer.program)},
      {"recorded", asked ? Json(answer.recorded()) : Json(nullptr)},
      {"why_not", text_or_null(answer.why_not)},
      {"python", text_or_null(answer.python)},
      {"facts", facts_json(answer.facts)},
      {"limits", rows},
      {"directories", places},
      {"system", around ? processes::system_json(around->system, around->python) : Json(nullptr)},
      {"devices", around ? processes::gpus_json(around->system) : Json(nullptr)},
      {"hooks", around ? facts_json(around->hooks) : Json(nullptr)},
  };
}

// With --device only that one.
processes::SystemFacts system_of(const std::string& device) {
  processes::SystemFacts system = processes::system_facts();
  const processes::DeviceChoice choice = processes::DeviceChoice::of(device);
  if (choice.kind == processes::DeviceChoice::Kind::any) return system;
  processes::observe_machine(choice);  // throws where there is none
  std::erase_if(system.gpus, [&](const processes::SystemGpu& gpu) {
    return choice.kind == processes::DeviceChoice::Kind::host ||
           gpu.index != static_cast<unsigned>(choice.ordinal);
  });
  return system;
}

}  // namespace

int info_command(const Words& words) {
  Arguments arguments{
      "info", "[OPTIONS] [-- PROGRAM [ARGUMENTS]]",
      "Tells whether a program would be recorded, and what of it: it is started and "
      "stopped before its main. Without one: the system, its devices, Python, what the recorder "
      "can hook here, limits and directories.",
      kExamples};
  bool json = false;
  bool detailed = false;
  std::string device;
  Words program;
  arguments.flag("--json", json, "print JSON (docs/json.md)");
  arguments.flag("--detailed", detailed, "swap, libraries, UUIDs, Python packages as well");
  arguments.option("--device", "DEVICE", device, "of the devices only this one: 0, cuda:0", {"0"});
  arguments.rest("PROGRAM", program, "the program and its arguments, as `oomrec run` has them",
                 {std::begin(processes::kPythonOptions), std::end(processes::kPythonOptions)});
  if (!arguments.parse(words)) return code(Exit::shown);

  processes::tell_unknown_variables();
  // All that may be refused comes before the first line: a bad variable, a device that is not
  // there.
  const std::vector<processes::SystemLimit> in_force = limits();
  const Answer answer = program.empty() ? Answer{} : ask(program);
  std::optional<Surroundings> around;
  if (program.empty())
    around = {system_of(device), processes::python_facts(detailed || json), hooks()};
  if (json) {
    print_json(answer_json(answer, around, in_force));
  } else {
    if (!answer.program.empty()) print_answer(answer, Terminal{STDOUT_FILENO});
    if (around) print_system(*around, detailed);
    print_surroundings(in_force);
  }
  return code(answer.recorded() ? Exit::shown : Exit::nothing_found);
}

}  // namespace oomrec::tools::commands
