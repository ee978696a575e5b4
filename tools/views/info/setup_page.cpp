#include "tools/views/info/setup_page.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "tools/base/text.h"

namespace oomrec::tools::views {
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
  for (const processes::SystemGpu& gpu : system.gpus) {
    print_row(fmt::format("cuda:{}", gpu.index),
              fmt::format("{}  {} of {} used", gpu.name, size_text(gpu.used_bytes),
                          size_text(gpu.total_bytes)));
    if (detail == Detail::all) print_row("", gpu.uuid);
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
    rows.push_back({{"fact", fact.name},
                    {"active", fact.active ? Json(*fact.active) : Json(nullptr)},
                    {"detail", text_or_null(fact.detail)}});
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
