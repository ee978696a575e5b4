#include "tools/processes/launch/options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <deque>

#include "tools/base/arguments.h"
#include "tools/base/directory.h"
#include "tools/base/error.h"
#include "tools/base/terminal.h"
#include "tools/base/text.h"
#include "tools/processes/launch/python.h"

namespace oomrec::tools::processes {
namespace {

constexpr const char* kExamples =
    "  oomrec run train.py                            record; a bundle when memory runs out\n"
    "  oomrec run --limit 8G train.py --epochs 5      fail allocations beyond 8 GiB\n"
    "  oomrec run --limit-gpu 20G -m package.train    limit GPU memory; 4G@1: on cuda:1\n"
    "  oomrec run --mode exact -- ./server            every event, not a sample\n"
    "  oomrec run --dump-dir /var/oom/%h -- ./server  where bundles go\n"
    "  oomrec run --live -- python3.12 train.py       what holds the memory, while it runs\n"
    "\n"
    "Sizes are a number with K, M, G or T: powers of 1024. Each option except --cgroup, --live "
    "and\n"
    "--jit-names has a variable: --limit-as is OOMREC_LIMIT_AS. Exit code: the program's own, "
    "128+N\n"
    "when signal N ended it; 125 oomrec failed, 126 the program is not executable, 127 there is "
    "no\n"
    "such program.\n";

struct ValueType {
  std::string_view placeholder, words;
};
constexpr ValueType kTypes[] = {
#define X(type, parser, placeholder, words, accepted) {placeholder, words},
    OOMREC_OPTION_TYPES(X)
#undef X
};

// "8G" for "8GB" and "8GiB", which other programs accept; empty for other mistakes.
std::string_view size_meant(std::string_view value) {
  if (!value.ends_with('B') && !value.ends_with('b')) return {};
  value.remove_suffix(1);
  if (value.ends_with('i')) value.remove_suffix(1);
  std::uint64_t bytes = 0;
  return parse_size(value, bytes) ? value : std::string_view{};
}

// An invalid value, and the flag or variable that has it.
struct InvalidValue {
  const OptionRow* row;
  std::string name;
  std::string value;

  std::string advice() const {
    const bool is_size = row->type == OptionType::size || row->type == OptionType::budget;
    const std::string_view meant = is_size ? size_meant(value) : std::string_view{};
    return meant.empty() ? fmt::format("Use {}.", accepted_by(row->variable))
                         : fmt::format("Use {}: suffixes are K M G T, powers of 1024.", meant);
  }
};

[[noreturn]] void throw_invalid(const std::vector<InvalidValue>& all) {
  std::string what;
  std::string advice;
  for (const InvalidValue& one : all) {
    what += fmt::format("{}'{}' for {}", what.empty() ? "" : ", ", printable(one.value), one.name);
    if (all.size() > 1) advice += fmt::format("{}{}: ", advice.empty() ? "" : " ", one.name);
    advice += one.advice();
  }
  throw Error{Exit::run_failed,
              fmt::format("invalid value{} {}", all.size() == 1 ? "" : "s:", what), advice};
}

// Variables that are read but are no options, without OOMREC_.
constexpr std::string_view kOtherVariables[] = {
    "LIBRARY",      "INFO",      "PROC_ROOT", "SYS_ROOT",  "CGROUP_ROOT",
    "KERNEL_LOG",   "SIMULATED", "COMMAND",   "PYTHON",    "PYTEST",
    "PROCESS_TREE", "PID",       "BUNDLE",    "FORGET_AT", "LIFE_ROWS"};

}  // namespace

std::string OptionRow::flag() const {
  std::string text = "--";
  text += name;
  std::ranges::replace(text, '_', '-');
  return text;
}

std::string_view OptionRow::value() const {
  if (type == OptionType::flag) return standard == "1" ? "0|1" : "";
  return kTypes[static_cast<std::size_t>(type)].placeholder;
}

std::string OptionRow::help_text() const {
  const bool is_switch = value().empty();
  return is_switch || standard.empty() ? std::string{help} : fmt::format("{} [{}]", help, standard);
}

std::vector<std::string> OptionRow::words() const {
  const std::string_view words = kTypes[static_cast<std::size_t>(type)].words;
  if (words.empty()) return {};
  const std::vector<std::string_view> parts = split(words, ' ');
  return {parts.begin(), parts.end()};
}

const std::vector<OptionRow>& option_rows() {
  static const std::vector<OptionRow> rows = {
#define X(name, variable, type, scope, traits, standard, help)       \
  OptionRow{OptionId::name,     #name,  #variable, OptionType::type, \
            OptionScope::scope, traits, standard,  help},
      OOMREC_OPTIONS(X)
#undef X
  };
  return rows;
}

bool RunOptions::parse(const std::vector<std::string>& words, const Settings& environment) {
  Arguments arguments{
      "run", "[OPTIONS] [--] PROGRAM | FILE.py | -m MODULE | -c CODE [ARGUMENTS]",
      "Starts PROGRAM with the recorder. When memory runs out, or the program is killed, oomrec "
      "writes a bundle that says what held the memory; `oomrec show` reads it. FILE.py, -m and "
      "-c run with the python3 next to oomrec, or else the first in PATH.",
      kExamples};
  std::deque<std::string> values(option_rows().size());
  std::deque<bool> switches(option_rows().size());
  for (std::size_t i = 0; i < option_rows().size(); ++i) {
    const OptionRow& row = option_rows()[i];
    if (row.value().empty())
      arguments.flag(row.flag(), switches[i], row.help_text());
    else
      arguments.option(row.flag(), std::string{row.value()}, values[i], row.help_text(),
                       row.words());
  }
  std::string cgroup;
  arguments.option("--cgroup", "SIZE", cgroup,
                   "run in a memory cgroup of this size: at its limit oomrec pauses the program, "
                   "writes a bundle, then lets the kernel act");
  arguments.flag("--live", live_,
                 "show the program's memory live, as `oomrec top` does, above its output");
  arguments.flag("--jit-names", jit_names_,
                 "name functions of Node.js, Deno and .NET, which these compile at run time");
  arguments.rest("PROGRAM", program_, "the program and its arguments",
                 {std::begin(kPythonOptions), std::end(kPythonOptions)});
  if (!arguments.parse(words, Exit::run_failed)) return false;

  for (std::size_t i = 0; i < option_rows().size(); ++i) {
    const OptionRow& row = option_rows()[i];
    if (!arguments.given(row.flag())) continue;
    // To the library an empty variable is unset.
    if (!row.value().empty() && values[i].empty()) throw_invalid({{&row, row.flag(), ""}});
    settings_.emplace_back(row.variable, row.value().empty() ? "1" : values[i]);
    // The program may change its directory.
    if (row.type == OptionType::path)
      settings_.back().second = absolute_path(settings_.back().second).lexically_normal().string();
  }
  for (const auto& [variable, value] : environment)
    if (!is_set(variable)) settings_.emplace_back(variable, value);
  if (arguments.given("--cgroup") && (!parse_size(cgroup, cgroup_bytes_) || cgroup_bytes_ == 0)) {
    throw invalid_value("--cgroup", cgroup, fmt::format("Use {}.", accepted_by("OOMREC_LIMIT")),
                        Exit::run_failed);
  }
  read();
  if (program_.empty()) {
    throw Error{Exit::run_failed, "no program given",
                "Put it after the options: oomrec run --limit 8G train.py"};
  }
  program_ = with_interpreter(std::move(program_));
  return true;
}

bool RunOptions::is_set(std::string_view variable) const {
  return std::ranges::any_of(settings_,
                             [&](const auto& setting) { return setting.first == variable; });
}

void RunOptions::read() {
  for (const auto& [variable, value] : settings_)
    environment_.push_back(fmt::format("{}={}", variable, value));
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!is_set(text.substr(0, text.find('=')))) environment_.emplace_back(text);
  }
  std::vector<const char*> entries;
  for (const std::string& entry : environment_) entries.push_back(entry.c_str());
  entries.push_back(nullptr);

  OptionProblems problems;
  in_force_ = read_options(entries.data(), problems);
  if (problems.empty()) return;
  std::vector<InvalidValue> all;
  for (const OptionProblem& problem : problems) {
    const auto row = std::ranges::find(option_rows(), problem.variable, &OptionRow::variable);
    const std::string name = is_set(row->variable) ? row->flag() : problem.variable;
    all.push_back({&*row, name, problem.value});
  }
  throw_invalid(all);
}

void report_unknown_variables() {
  constexpr std::string_view kPrefix = "OOMREC_";
  std::vector<std::string_view> read_variables{std::begin(kOtherVariables),
                                               std::end(kOtherVariables)};
  for (const OptionRow& row : option_rows())
    read_variables.push_back(row.variable.substr(kPrefix.size()));
  for (char** entry = environ; *entry != nullptr; ++entry) {
    std::string_view name = *entry;
    if (!name.starts_with(kPrefix)) continue;
    name = name.substr(kPrefix.size(), name.find('=') - kPrefix.size());
    if (std::ranges::find(read_variables, name) != read_variables.end()) continue;
    const std::string_view meant = nearest(name, read_variables);
    remark(fmt::format("unknown variable {}{}{}", kPrefix, printable(name),
                       meant.empty() ? "" : fmt::format("; did you mean {}{}?", kPrefix, meant)));
  }
}

}  // namespace oomrec::tools::processes
