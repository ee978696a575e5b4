// `oomrec stress`: allocates in steps, recorded, until it has enough or is refused.
//
// Only under a cap: without one it would be the machine that runs out. A device ends by itself; of
// it, too, no more is taken than was said.
#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>

#include "common/options/options.h"
#include "tools/base/arguments.h"
#include "tools/base/text.h"
#include "tools/commands/commands.h"
#include "tools/processes/launch/facts.h"
#include "tools/processes/launch/self.h"
#include "tools/processes/stress/gpu.h"

namespace oomrec::tools::commands {
namespace {

constexpr const char* kExamples =
    "  oomrec stress --limit 256M --max 1G --step 16M\n"
    "  oomrec stress --limit 256M --max 128M --step 16M --hold 60   within the limit, to look at\n"
    "  ulimit -v 1000000; oomrec stress --max 2G --space map\n"
    "  oomrec stress --space cuda --device 1 --max 20G --step 256M\n"
    "\n"
    "Exit code: 0 it got --max, 3 it was refused before, 2 bad input or no cap, 128+N signal N\n"
    "ended it. A cap is --limit, RLIMIT_AS, RLIMIT_DATA or the memory limit of a cgroup; a device "
    "has\nits own size.\n";

constexpr const char* kChild = "--child";  // for ourselves
constexpr std::size_t kPageBytes = 4096;

struct Stress {
  std::string max, step = "16M", space = "heap", limit;
  unsigned device = 0;
  double hold_s = 0;
  bool touch = false, no_touch = false;

  bool parse(const Words& words) {
    Arguments arguments{"stress", "--max SIZE [OPTIONS]",
                        "Allocates in steps up to a size, under a cap, in a recorded process, and "
                        "prints what it holds.",
                        kExamples};
    arguments.option("--max", "SIZE", max, "how much in all");
    arguments.option("--step", "SIZE", step, "how much at a time [16M]");
    arguments.choice("--space", "NAME", space, {"heap", "map", "cuda", "hip"},
                     "by malloc, by mmap, or a GPU's memory by its driver [heap]");
    arguments.option("--device", "N", device, "which GPU, by its driver's number [0]");
    arguments.option("--hold", "SECONDS", hold_s, "keep it for so long when it is all there [0]");
    arguments.flag("--touch", touch, "write to each page (the default)");
    arguments.flag("--no-touch", no_touch, "only ask for it: no RAM is used");
    arguments.option("--limit", "SIZE", limit,
                     "the cap: as of `oomrec run`, on a GPU its --limit-gpu");
    if (!arguments.parse(words)) return false;
    if (on_device() || !arguments.given("--device")) return true;
    throw Error{Exit::bad_input, fmt::format("--space {} is on no device", space),
                "Name a GPU's: --space cuda --device 1, --space hip --device 1"};
  }

  bool on_device() const { return space == "cuda" || space == "hip"; }

  Words child_words() const {
    Words words = {"stress", kChild,    "--max", max,      "--step",
                   step,     "--space", space,   "--hold", fmt::format("{}", hold_s)};
    if (on_device()) words.insert(words.end(), {"--device", std::to_string(device)});
    if (no_touch) words.emplace_back("--no-touch");
    return words;
  }
};

std::uint64_t size_of(const char* flag, const std::string& text) {
  std::uint64_t bytes = 0;
  if (parse_size(text, bytes) && bytes != 0) return bytes;
  throw Error{Exit::bad_input,
              text.empty() ? fmt::format("{} is missing", flag)
                           : fmt::format("{} {} is not understood", flag, printable(text)),
              "Give a size such as 64M or 1.5G (suffixes K M G T)."};
}

bool is_set(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

void need_cap(const Stress& stress) {
  if (stress.on_device() || !stress.limit.empty() || is_set("OOMREC_LIMIT") ||
      is_set("OOMREC_LIMIT_AS") || !processes::limits_in_force().empty()) {
    return;
  }
  throw Error{Exit::bad_input, "nothing bounds it: the machine itself would run out",
              "Set a cap: oomrec stress --limit 256M --max 1G"};
}

void touch_pages(void* block, std::size_t bytes) {
  auto* const at = static_cast<volatile char*>(block);
  for (std::size_t i = 0; i < bytes; i += kPageBytes) at[i] = 1;
}

void* map_pages(std::size_t bytes) {
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return at != MAP_FAILED ? at : nullptr;
}

// Asks for so much; the result says why it was refused, or nothing.
using Allocate = std::function<std::string(std::size_t bytes)>;

Allocate on_host(const Stress& stress) {
  return [&stress](std::size_t bytes) -> std::string {
    void* const block = stress.space == "heap" ? std::malloc(bytes) : map_pages(bytes);
    if (block == nullptr) return std::strerror(errno);
    if (!stress.no_touch) touch_pages(block, bytes);
    return {};
  };
}

Allocate on_device(const Stress& stress) {
  const processes::Gpu gpu{stress.space == "hip" ? Space::hip : Space::cuda, stress.device};
  return [gpu](std::size_t bytes) { return gpu.allocate(bytes); };
}

int allocate_in_steps(const Stress& stress) {
  const std::uint64_t max = size_of("--max", stress.max);
  const std::uint64_t step = size_of("--step", stress.step);
  const Allocate allocate = stress.on_device() ? on_device(stress) : on_host(stress);
  for (std::uint64_t held = 0; held < max;) {
    const std::uint64_t bytes = std::min(step, max - held);
    if (const std::string why_not = allocate(bytes); !why_not.empty()) {
      fmt::print("refused at {}: {}\n", size_text(held), why_not);
      return code(Exit::stress_refused);
    }
    held += bytes;
    fmt::print("{} of {}\n", size_text(held), size_text(max));
    std::fflush(stdout);
  }
  std::this_thread::sleep_for(std::chrono::duration<double>{stress.hold_s});
  return code(Exit::shown);
}

}  // namespace

int stress_command(const Words& words) {
  const bool is_child = !words.empty() && words[0] == kChild;
  Stress stress;
  if (!stress.parse(is_child ? Words(words.begin() + 1, words.end()) : words))
    return code(Exit::shown);
  if (is_child) return allocate_in_steps(stress);

  size_of("--max", stress.max);
  size_of("--step", stress.step);
  std::vector<std::string> options;
  if (!stress.limit.empty()) {
    size_of("--limit", stress.limit);
    options = {stress.on_device() ? "--limit-gpu" : "--limit", stress.limit};
  }
  if (stress.touch && stress.no_touch) {
    throw Error{Exit::bad_input, "--touch and --no-touch exclude each other", "Leave one out."};
  }
  need_cap(stress);
  return processes::exit_code_of(processes::run_self(options, stress.child_words()).wait_status);
}

}  // namespace oomrec::tools::commands
