// `oomrec info`: is a program recorded, and if not, why; which limits and directories are in force.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "tools/arguments.h"
#include "tools/commands.h"
#include "tools/json.h"
#include "tools/launch/facts.h"
#include "tools/launch/library.h"
#include "tools/launch/python.h"
#include "tools/launch/recorded.h"
#include "tools/terminal.h"
#include "tools/text.h"

namespace oomrec::tools {
namespace {

constexpr const char* kExamples =
    "  oomrec info                      limits and directories\n"
    "  oomrec info -- python train.py   would it be recorded? (stopped before its main)\n"
    "  oomrec info --json -- ./server\n"
    "\n"
    "Exit code 1: the program would not be recorded.\n";

struct Answer {
  std::string program;  // empty: none was asked about
  std::string why_not;  // empty: it is recorded
  std::string python;
  std::vector<Fact> facts;

  bool recorded() const { return why_not.empty(); }
};

Answer ask(const Words& words) {
  RunOptions options;
  Words as_run = {"--"};
  as_run.insert(as_run.end(), words.begin(), words.end());
  options.parse(as_run);
  Answer answer;
  answer.program = find_program(options.program().front());
  answer.why_not = unsuitability(answer.program);
  if (!answer.recorded()) return answer;

  answer.facts = facts_of(answer.program, options.program(), recording_settings(options));
  answer.python = python_support(answer.facts);
  const auto recorder = std::find_if(answer.facts.begin(), answer.facts.end(),
                                     [](const Fact& fact) { return fact.name == "recorder"; });
  if (recorder == answer.facts.end()) {
    answer.why_not =
        "was started, but the recorder did not report: the loader left it out, or a sandbox "
        "stopped it";
  } else if (recorder->active == false) {
    answer.why_not = fmt::format("is not recorded: {}", recorder->detail);
  }
  return answer;
}

std::string library_or_nothing() {
  try {
    return find_library();
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
  RunOptions options;
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
std::vector<SystemLimit> limits() {
  RunOptions options;
  options.parse({"--", "info"});
  const Options& asked = options.in_force();
  std::vector<SystemLimit> limits;
  if (asked.limit != 0) limits.push_back({"soft", asked.limit});
  if (*asked.limit_gpu != '\0') {
    for (const std::string_view item : split(asked.limit_gpu, ',')) {
      const std::size_t at = item.find('@');
      SystemLimit limit{"device", 0};
      if (at != item.npos) limit.name += fmt::format(" {}", item.substr(at + 1));
      if (parse_size(item.substr(0, at), limit.bytes)) limits.push_back(limit);
    }
  }
  const std::vector<SystemLimit> of_system = limits_in_force();
  limits.insert(limits.end(), of_system.begin(), of_system.end());
  return limits;
}

// A size, or sizes by device as they were given.
std::string limit_text(const std::string& text) {
  std::uint64_t bytes = 0;
  return parse_size(text, bytes) ? size_text(bytes) : printable(text);
}

void print_answer(const Answer& answer, const Terminal& terminal) {
  fmt::print("{:<12} {}\n", "program", printable(answer.program));
  if (!answer.recorded()) {
    fmt::print("{:<12} {}: {} {}\n\n", "recorded", terminal.paint(Colour::red, "no"),
               printable(answer.program), answer.why_not);
    return;
  }
  fmt::print("{:<12} {}\n", "recorded", terminal.paint(Colour::green, "yes"));
  for (const Fact& fact : answer.facts) {
    const std::string word = !fact.active ? "" : *fact.active ? "yes" : "no";
    const bool is_limit = fact.name.ends_with("_limit") && fact.active;
    const std::string detail = !is_limit       ? printable(fact.detail)
                               : !*fact.active ? "none"
                                               : limit_text(fact.detail);
    if (word.empty() && detail.empty()) continue;
    fmt::print("  {:<20} {:<4} {}\n", fact.name, word, clip(detail, kColumns - 28));
  }
  fmt::print("{:<12} {}\n\n", "python",
             answer.python.empty() ? "not a Python program" : answer.python);
}

void print_surroundings(const std::vector<SystemLimit>& limits) {
  fmt::print("limits in force\n");
  if (limits.empty()) fmt::print("  none\n");
  for (const SystemLimit& limit : limits)
    fmt::print("  {:<14} {}\n", limit.name, size_text(limit.bytes));
  fmt::print("\ndirectories\n");
  for (const Directory& directory : directories()) {
    fmt::print("  {:<12} {}\n", directory.name,
               !directory.path.empty() ? printable(directory.path) : directory.by_default);
  }
}

Json answer_json(const Answer& answer, const std::vector<SystemLimit>& limits) {
  Json facts = Json::array();
  for (const Fact& fact : answer.facts) {
    facts.push_back({{"fact", fact.name},
                     {"active", fact.active ? Json(*fact.active) : Json(nullptr)},
                     {"detail", text_or_null(fact.detail)}});
  }
  Json rows = Json::array();
  for (const SystemLimit& limit : limits)
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
      {"facts", facts},
      {"limits", rows},
      {"directories", places},
  };
}

}  // namespace

int info_command(const Words& words) {
  Arguments arguments{
      "info", "[OPTIONS] [-- PROGRAM [ARGUMENTS]]",
      "Tells whether a program would be recorded, and what of it: it is started and "
      "stopped before its main. Without one: limits and directories.",
      kExamples};
  bool json = false;
  Words program;
  arguments.flag("--json", json, "print JSON (docs/json.md)");
  arguments.rest("PROGRAM", program, "the program and its arguments, as `oomrec run` has them",
                 {std::begin(kPythonOptions), std::end(kPythonOptions)});
  if (!arguments.parse(words)) return code(Exit::shown);

  tell_unknown_variables();
  const Answer answer = program.empty() ? Answer{} : ask(program);
  const std::vector<SystemLimit> in_force = limits();
  if (json) {
    print_json(answer_json(answer, in_force));
  } else {
    if (!answer.program.empty()) print_answer(answer, Terminal{STDOUT_FILENO});
    print_surroundings(in_force);
  }
  return code(answer.recorded() ? Exit::shown : Exit::nothing_found);
}

}  // namespace oomrec::tools
