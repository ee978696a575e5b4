#include "tools/findings/advice/heap_limit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "common/system/units.h"
#include "tools/base/text.h"
#include "tools/findings/advice/limit_rules.h"

namespace oomrec::tools::findings {
namespace {

struct Runtime {
  std::string_view program;   // how its name begins
  std::string_view name;      // for readers
  std::string_view option;    // what sets its limit: {0} in MiB, {1} in bytes
  std::string_view beside;    // what takes memory beside the limited heap
  std::string_view standard;  // without an option; empty: nothing is said about that
};

constexpr Runtime kRuntimes[] = {
    {"node", "V8", "NODE_OPTIONS=--max-old-space-size={0}",
     "young objects, buffers, code and addons", "V8 then chooses one by the memory that it sees"},
    {"java", "the JVM", "-Xmx{0}m", "metaspace, code, threads and direct buffers",
     "the JVM then takes a quarter of the memory that it sees"},
    {"php", "PHP", "memory_limit={0}M", "extensions and shared memory", ""},
    {"dotnet", ".NET", "DOTNET_GCHeapHardLimit={1:x}", "code, threads and native libraries", ""},
};

const Runtime* runtime_of(const AdviceFacts& facts) {
  const auto* const found = std::ranges::find_if(
      kRuntimes, [&](const Runtime& row) { return facts.limit.program.starts_with(row.program); });
  return found != std::end(kRuntimes) ? found : nullptr;
}

// --- What the command line has -------------------------------------------------------------------

struct Option {
  std::string_view program;
  std::string_view name;  // "-Xmx": the value follows at once
  std::uint64_t unit;     // of a number without a suffix; 0: its value is no size
};

// Of two that match, the later one counts.
constexpr Option kOptions[] = {
    {"node", "--max-old-space-size", 0},
    {"node", "--max-old-space-size=", kMiB},
    {"node", "--max_old_space_size", 0},
    {"node", "--max_old_space_size=", kMiB},
    {"node", "--max-heap-size", 0},
    {"node", "--max-heap-size=", kMiB},
    {"java", "-Xmx", 1},
    {"java", "-XX:MaxHeapSize=", 1},
    {"java", "-XX:MaxRAM", 0},
    {"php", "memory_limit=", 1},
    {"php", "-dmemory_limit=", 1},
};

// Whether the next argument belongs to this one.
bool has_value(std::string_view argument) {
  constexpr std::array<std::string_view, 12> kOptionsWithValue = {
      "-cp", "-classpath", "--class-path", "-p", "--module-path", "-d", "-c",
      "-r",  "--require",  "--import",     "-e", "--eval"};
  return std::ranges::find(kOptionsWithValue, argument) != kOptionsWithValue.end();
}

// "512", "512m", "2G"; 0: not a size.
std::uint64_t size_in(std::string_view value, std::uint64_t unit) {
  if (unit == 0) return 0;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc{}) return 0;
  const std::string_view suffix{end, static_cast<std::size_t>(value.data() + value.size() - end)};
  unsigned shift = 0;
  if (!suffix.empty()) {
    constexpr std::string_view kSuffixes = "kmgt";
    const auto at = kSuffixes.find(static_cast<char>(suffix[0] | 0x20));
    if (suffix.size() != 1 || at == std::string_view::npos) return 0;
    shift = 10 * (static_cast<unsigned>(at) + 1);
    unit = 1;
  }
  constexpr std::uint64_t kMost = std::uint64_t{1} << 50;  // a larger one is no limit
  return number > (kMost >> shift) / unit ? 0 : (number << shift) * unit;
}

// --- What to set it to ---------------------------------------------------------------------------

// A quarter of the cgroup's limit is for what is not in the heap.
std::uint64_t fitting_bytes(const AdviceFacts& facts) {
  return facts.limit.cgroup_bytes / 4 * 3 / kMiB * kMiB;
}

std::string option_text(const Runtime& runtime, std::uint64_t bytes) {
  return fmt::format(fmt::runtime(runtime.option), bytes / kMiB, bytes);
}

}  // namespace

HeapLimit heap_limit_of(std::string_view program, const std::vector<std::string>& arguments) {
  HeapLimit limit;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const bool is_value = has_value(arguments[i - 1]);
    // The program's own arguments begin at its file: they are no options of the runtime.
    if (!is_value && !arguments[i].starts_with("-")) break;
    for (const Option& option : kOptions) {
      if (!program.starts_with(option.program) || !arguments[i].starts_with(option.name)) continue;
      const std::string_view value = std::string_view{arguments[i]}.substr(option.name.size());
      limit = {arguments[i], size_in(value, option.unit)};
    }
  }
  return limit;
}

std::uint64_t php_limit_in(std::string_view evidence) {
  constexpr std::string_view kBeginning = "Allowed memory size of ";
  const std::size_t at = evidence.find(kBeginning);
  if (at == std::string_view::npos) return 0;
  const std::string_view rest = evidence.substr(at + kBeginning.size());
  return size_in(rest.substr(0, rest.find(' ')), 1);
}

std::string raise_heap_text(const AdviceFacts& facts) {
  const Runtime* const runtime = runtime_of(facts);
  if (runtime == nullptr) {
    return "The language runtime's own limit was reached, not the machine's: raise its heap limit "
           "(its documentation names the option).";
  }
  const HeapLimit& heap = facts.limit.heap;
  const std::string present =
      heap.bytes == 0 ? std::string{}
                      : fmt::format(" ({}{})", size_text(heap.bytes),
                                    heap.option.empty() ? "" : ", set by " + heap.option);
  const std::uint64_t bytes =
      rounded(std::max(with_quarter(needed_bytes(facts)), heap.bytes + heap.bytes / 2));
  const std::string begin =
      fmt::format("{}'s own limit{} was reached, not the machine's", runtime->program, present);
  const std::uint64_t fitting = fitting_bytes(facts);
  if (fitting == 0 || bytes <= fitting)
    return fmt::format("{}: try {}.", begin, option_text(*runtime, bytes));
  const std::string cgroup = size_text(facts.limit.cgroup_bytes);
  if (fitting <= heap.bytes) {
    return fmt::format(
        "{}. Its cgroup allows {}, too little for more: raise both, to {} and to {} "
        "for the cgroup, or let the program hold less.",
        begin, cgroup, option_text(*runtime, bytes), value_text(rounded(bytes / 3 * 4)));
  }
  return fmt::format("{}: try {}, the most that leaves a quarter of its cgroup's {} for {}.", begin,
                     option_text(*runtime, fitting), cgroup, runtime->beside);
}

std::string heap_in_cgroup_text(const AdviceFacts& facts) {
  const Runtime* const runtime = runtime_of(facts);
  const std::uint64_t cgroup = facts.limit.limit;
  if (runtime == nullptr || facts.limit.kind != LimitKind::cgroup || cgroup == 0) return {};
  const std::uint64_t fitting = cgroup / 4 * 3 / kMiB * kMiB;
  const HeapLimit& heap = facts.limit.heap;
  const std::string fits = option_text(*runtime, fitting);
  if (heap.option.empty()) {
    if (runtime->standard.empty()) return {};
    return fmt::format(
        " Its command line sets no limit for {}'s heap ({}): set one, at most {} in "
        "a cgroup of {}, which leaves a quarter for {}.",
        runtime->name, runtime->standard, fits, size_text(cgroup), runtime->beside);
  }
  if (heap.bytes == 0) return {};
  if (heap.bytes >= cgroup) {
    return fmt::format(
        " {} lets the heap alone grow beyond the cgroup's {}: in this cgroup, {} "
        "leaves a quarter for {}.",
        heap.option, size_text(cgroup), fits, runtime->beside);
  }
  if (heap.bytes <= fitting) {
    return fmt::format(
        " {} leaves {} of the cgroup's {} for {}: if the heap was full, these need "
        "more.",
        heap.option, size_text(cgroup - heap.bytes), size_text(cgroup), runtime->beside);
  }
  return fmt::format(
      " {} leaves only {} of the cgroup's {} for {}: heap and these together may "
      "exceed it. In this cgroup, {} leaves a quarter.",
      heap.option, size_text(cgroup - heap.bytes), size_text(cgroup), runtime->beside, fits);
}

}  // namespace oomrec::tools::findings
