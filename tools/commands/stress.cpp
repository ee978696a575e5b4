// `oomrec stress`: allocates in steps in a recorded process, up to a size or until it fails.
//
// It needs a limit: without one the machine itself would run out. A GPU's size is its limit.
#include <fmt/format.h>

#include "common/options/options.h"
#include "tools/base/arguments.h"
#include "tools/base/text.h"
#include "tools/commands/commands.h"
#include "tools/processes/stress/stress.h"

namespace oomrec::tools::commands {
namespace {

constexpr const char* kStressExamples =
    "  oomrec stress --limit 256M --max 1G --step 16M\n"
    "  oomrec stress --limit 256M --max 128M --step 16M --hold 60   within the limit, to inspect\n"
    "  ulimit -v 1000000; oomrec stress --max 2G --space map\n"
    "  oomrec stress --space cuda --device 1 --max 20G --step 256M\n"
    "\n"
    "Exit code: 0 it reached --max, 3 an allocation failed before, 2 bad input or no limit, 128+N "
    "signal\nN killed it. A limit is --limit, RLIMIT_AS, RLIMIT_DATA or the memory limit of a "
    "cgroup; a\ndevice has its own size.\n";

std::uint64_t size_of(const char* flag, const std::string& text) {
  std::uint64_t bytes = 0;
  if (parse_size(text, bytes) && bytes != 0) return bytes;
  const std::string what_to_do = "Use a size such as 64M or 1.5G (suffixes K M G T).";
  if (text.empty()) throw Error{Exit::bad_input, fmt::format("{} is missing", flag), what_to_do};
  throw invalid_value(flag, text, what_to_do);
}

struct StressOptions {
  std::string max, step = "16M", space = "heap", limit;
  unsigned device = 0;
  double hold_s = 0;
  bool touch = false, no_touch = false;

  bool parse(const Words& words) {
    Arguments arguments{
        "stress", "--max SIZE [OPTIONS]",
        "Allocates in steps up to a size, under a limit, with the recorder, and prints "
        "what it holds.",
        kStressExamples};
    arguments.option("--max", "SIZE", max, "how much in total");
    arguments.option("--step", "SIZE", step, "how much at a time [16M]");
    arguments.choice("--space", "NAME", space, {"heap", "map", "cuda", "hip"},
                     "malloc, mmap, or a GPU's memory through its driver [heap]");
    arguments.option("--device", "N", device, "which GPU, by its driver's number [0]");
    arguments.option("--hold", "SECONDS", hold_s, "hold it for SECONDS at the end [0]");
    arguments.flag("--touch", touch, "write to each page (the default)");
    arguments.flag("--no-touch", no_touch, "only allocate: no RAM is used");
    arguments.option("--limit", "SIZE", limit,
                     "the limit, as in `oomrec run`; on a GPU it is --limit-gpu");
    if (!arguments.parse(words)) return false;
    if (is_on_device() || !arguments.given("--device")) return true;
    throw Error{Exit::bad_input, fmt::format("--space {} is not on a device", space),
                "Give a GPU's: --space cuda --device 1, --space hip --device 1"};
  }

  bool is_on_device() const { return space == "cuda" || space == "hip"; }

  processes::StressPlan plan() const {
    return {space,
            device,
            size_of("--max", max),
            size_of("--step", step),
            hold_s,
            no_touch ? processes::Pages::untouched : processes::Pages::touched};
  }

  Words child_words() const {
    Words words = {"stress", kChildFlag, "--max", max,      "--step",
                   step,     "--space",  space,   "--hold", fmt::format("{}", hold_s)};
    if (is_on_device()) words.insert(words.end(), {"--device", std::to_string(device)});
    if (no_touch) words.emplace_back("--no-touch");
    return words;
  }
};

}  // namespace

int stress_command(const Words& words) {
  const bool is_child = !words.empty() && words[0] == kChildFlag;
  StressOptions options;
  if (!options.parse(is_child ? Words(words.begin() + 1, words.end()) : words))
    return code(Exit::shown);
  const processes::StressPlan plan = options.plan();
  if (is_child)
    return code(processes::allocate_in_steps(plan) ? Exit::shown : Exit::stress_refused);
  if (!options.limit.empty()) size_of("--limit", options.limit);
  if (options.touch && options.no_touch) {
    throw Error{Exit::bad_input, "--touch and --no-touch exclude each other", "Leave one out."};
  }
  return processes::run_stress(plan, options.limit, options.child_words());
}

}  // namespace oomrec::tools::commands
