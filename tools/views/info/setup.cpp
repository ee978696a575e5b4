#include "tools/views/info/setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>

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
  const auto recorder = std::ranges::find_if(
      check.facts, [](const processes::Fact& fact) { return fact.name == "recorder"; });
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
  std::erase_if(system.gpus, [&](const processes::GpuSample& gpu) {
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

namespace {

// A size in readable units. A list of sizes by device is printed unchanged.
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

void print_check(const ProgramCheck& check, const Terminal& terminal) {
  fmt::print("{:<12} {}\n", "program", printable(check.program));
  if (!check.recorded()) {
    fmt::print("{:<12} {}: {} {}\n\n", "recorded", terminal.paint(Colour::red, "no"),
               printable(check.program), check.why_not);
    return;
  }
  fmt::print("{:<12} {}\n", "recorded", terminal.paint(Colour::green, "yes"));
  print_facts(check.facts);
  fmt::print("{:<12} {}\n\n", "python",
             check.python.empty() ? "not a Python program" : check.python);
}

void print_row(std::string_view name, const std::string& value) {
  fmt::print("  {:<14} {}\n", name, value);
}

void print_machine(const Machine& machine, Detail detail) {
  const processes::SystemFacts& system = machine.system;
  fmt::print("system\n");
  print_row("platform", fmt::format("{} {}", system.platform, system.architecture));
  print_row("CPUs", system.cpus == system.cpus_logical
                        ? count_text(system.cpus)
                        : fmt::format("{} of {}", system.cpus, system.cpus_logical));
  print_row("memory", fmt::format("{} of {} available", size_text(system.memory_available),
                                  size_text(system.memory_total)));
  if (detail == Detail::all) {
    print_row("swap", fmt::format("{} of {} free", size_text(system.swap_free),
                                  size_text(system.swap_total)));
    print_row("C library", system.libc);
    print_row("oomrec", OOMREC_VERSION);
  }
  fmt::print("\ndevices ({})\n", system.backend);
  if (system.gpus.empty()) fmt::print("  none that NVML lists\n");
  for (const processes::GpuSample& gpu : system.gpus) {
    print_row(fmt::format("cuda:{}", gpu.index),
              fmt::format("{}  {} of {} used", gpu.name, size_text(gpu.used_bytes),
                          size_text(gpu.total_bytes)));
    if (detail == Detail::all) print_row("", printable(gpu.uuid));
  }
  if (detail == Detail::all && !system.driver_version.empty())
    print_row("driver", system.driver_version);
  fmt::print("\nPython\n");
  const processes::PythonFacts& python = machine.python;
  print_row(python.path.empty() ? "none" : python.version, printable(python.path));
  for (const auto& [name, version] : python.packages.items())
    if (version.is_string()) print_row(name, printable(version.get<std::string>()));
  fmt::print("\nhooks\n");
  if (machine.hooks.empty())
    fmt::print("  unknown: no program could be started with the library\n");
  print_facts(machine.hooks);
  fmt::print("\n");
}

void print_limits(const std::vector<processes::SystemLimit>& limits) {
  fmt::print("limits in force\n");
  if (limits.empty()) fmt::print("  none\n");
  for (const processes::SystemLimit& limit : limits)
    fmt::print("  {:<14} {}\n", limit.name, size_text(limit.bytes));
}

void print_directories(const std::vector<Directory>& directories) {
  fmt::print("\ndirectories\n");
  for (const Directory& directory : directories) {
    fmt::print("  {:<12} {}\n", directory.name,
               !directory.path.empty() ? printable(directory.path) : directory.fallback);
  }
}

Json facts_json(const std::vector<processes::Fact>& facts) {
  Json rows = Json::array();
  for (const processes::Fact& fact : facts) {
    rows.push_back(
        {{"fact", fact.name}, {"active", fact.active}, {"detail", text_or_null(fact.detail)}});
  }
  return rows;
}

}  // namespace

void print_setup(const Setup& setup, Detail detail, const Terminal& terminal) {
  if (setup.program) print_check(*setup.program, terminal);
  if (setup.machine) print_machine(*setup.machine, detail);
  print_limits(setup.limits);
  print_directories(setup.directories);
}

Json setup_json(const Setup& setup) {
  Json limits = Json::array();
  for (const processes::SystemLimit& limit : setup.limits)
    limits.push_back({{"kind", limit.name}, {"bytes", limit.bytes}});
  Json paths = Json::object();
  for (const Directory& directory : setup.directories)
    paths[directory.name] = text_or_null(directory.path);
  const ProgramCheck check = setup.program.value_or(ProgramCheck{});
  const std::optional<Machine>& machine = setup.machine;
  return {
      {"schema_version", 1},
      {"program", text_or_null(check.program)},
      {"recorded", setup.program ? Json(check.recorded()) : Json(nullptr)},
      {"why_not", text_or_null(check.why_not)},
      {"python", text_or_null(check.python)},
      {"facts", facts_json(check.facts)},
      {"limits", limits},
      {"directories", paths},
      {"system",
       machine ? processes::system_json(machine->system, machine->python) : Json(nullptr)},
      {"devices", machine ? processes::gpus_json(machine->system) : Json(nullptr)},
      {"hooks", machine ? facts_json(machine->hooks) : Json(nullptr)},
  };
}

}  // namespace oomrec::tools::views
