#include "tests/fuzz/target.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <new>
#include <stdexcept>
#include <vector>

#include "common/bundle/heap_areas.h"
#include "common/limits/ceilings.h"
#include "common/limits/counted_limits.h"
#include "common/limits/health.h"
#include "common/limits/memory_pools.h"
#include "common/limits/stalls.h"
#include "common/options/options.h"
#include "common/session/secrets.h"
#include "common/system/files.h"
#include "common/system/hook_scope.h"
#include "common/system/text.h"
#include "recorder/symbols/file_symbols.h"
#include "tools/base/csv.h"
#include "tools/base/error.h"
#include "tools/base/json.h"
#include "tools/bundles/store/bundles.h"
#include "tools/commands/commands.h"
#include "tools/deaths/cgroup_account.h"
#include "tools/deaths/counters.h"
#include "tools/deaths/kernel_kills.h"
#include "tools/deaths/kernel_log.h"
#include "tools/formats/pytorch/pickle_reader.h"
#include "tools/formats/pytorch/snapshot.h"
#include "tools/processes/observe/machine.h"
#include "tools/processes/supervise/program_facts.h"

namespace oomrec::fuzz {
namespace {

namespace fs = std::filesystem;
using namespace oomrec::tools;

constexpr std::uint64_t kNow = 1'700'000'000'000'000'000;

std::string write_file(const fs::path& path, std::string_view bytes) {
  std::ofstream{path, std::ios::binary | std::ios::trunc}.write(
      bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return path.string();
}

bool accepts(const std::function<void()>& read) try {
  read();
  return true;
} catch (const Error&) {
  return false;
}

// The same input always goes to the same command.
bool recording(std::string_view input) {
  using commands::Words;
  using Command = int (*)(const Words&);
  static constexpr auto kReaders = std::to_array<std::pair<Command, const char*>>({
      {commands::show_command, nullptr},
      {commands::show_command, "--json"},
      {commands::stats_command, nullptr},
      {commands::tree_command, nullptr},
      {commands::leaks_command, nullptr},
      {commands::fragmentation_command, "--json"},
      {commands::timeline_command, nullptr},
  });
  const std::string path = write_file(directory() + "/recording.oomrec", input);
  const auto& [command, option] = kReaders[std::hash<std::string_view>{}(input) % kReaders.size()];
  return accepts([&, command = command, option = option] {
    command(option == nullptr ? Words{path} : Words{option, path});
  });
}

// Sections "=== NAME\n…" become files.
void write_sections(const fs::path& to, std::string_view input) {
  constexpr std::string_view kSection = "=== ";
  while (input.starts_with(kSection)) {
    const std::size_t name_end = std::min(input.find('\n'), input.size());
    const std::string name{input.substr(kSection.size(), name_end - kSection.size())};
    input.remove_prefix(std::min(name_end + 1, input.size()));
    const std::size_t next = input.find("\n=== ");
    const std::string_view bytes = input.substr(0, next);
    const bool is_name =
        !name.empty() && name.size() < 64 &&
        name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_.0123456789") == std::string::npos &&
        name != "." && name != "..";
    if (is_name) write_file(to / name, bytes);
    input.remove_prefix(next == std::string_view::npos ? input.size() : next + 1);
  }
}

bool bundle(std::string_view input) {
  const fs::path path = fs::path{directory()} / "oom_victim_4242";
  fs::remove_all(path);
  fs::create_directory(path);
  write_sections(path, input);
  bundles::summary_of(path);
  return accepts([&] { commands::show_command({"--json", path.string()}); });
}

bool telemetry(std::string_view input) {
  const std::string path = write_file(directory() + "/telemetry", input);
  return accepts([&] { commands::analyze_command({"--json", path}); });
}

bool snapshot(std::string_view input) try {
  formats::import_snapshot(input, kNow);
  return true;
} catch (const formats::PickleError&) {
  return false;
}

bool json(std::string_view input) try {
  JsonBudget budget;
  const Json value = parse_json(input, budget);
  if (value.is_discarded()) return false;
  const std::string text = value.dump();
  if (parse_json(text).dump() != text) std::abort();  // what we write, we read
  json_text(value, 2);
  return true;
} catch (const JsonTooLarge&) {
  return false;
} catch (const std::length_error&) {
  return false;
}

bool csv(std::string_view input) {
  const CsvRows rows = csv_rows(input);
  for (const auto& row : rows.rows)
    for (const std::string& cell : row) csv_cell(cell);
  return !rows.cut;
}

bool log(std::string_view input) {
  const deaths::KernelLog log = deaths::parse_kernel_log(input, {kNow, kNow / 2});
  const std::vector<deaths::KernelKill> kills = deaths::kills_in(log);
  deaths::KillQuery query;
  query.pid = 4242;
  query.names = {"victim"};
  query.same_pid_namespace = true;
  query.to_realtime_ns = ~std::uint64_t{0};
  deaths::kill_of(kills, query);
  deaths::fault_of(log, query);
  for (const deaths::KernelKill& kill : kills)
    if (kill.report != nullptr) deaths::account_of(*kill.report, kill.pid, {kill.pid});
  return !kills.empty();
}

bool cgroup(std::string_view input) {
  const fs::path path = fs::path{directory()} / "cgroup";
  fs::create_directory(path);
  for (const char* const name : {"memory.current", "memory.max", "memory.stat", "memory.events",
                                 "memory.pressure", "cgroup.procs"})
    write_file(path / name, input);
  const deaths::OomReport report = deaths::report_of_cgroup(path);
  deaths::account_of(report, 4242, {4242});
  return report.limit_bytes != 0;
}

constexpr int kPid = 4242;
// What is read of /proc for `kPid` and for ourselves, of the machine, and of a cgroup.
constexpr const char* kProcessFiles[] = {"status", "stat",    "statm",   "maps",    "cgroup",
                                         "comm",   "cmdline", "environ", "uid_map", "pagemap"};
constexpr const char* kMachineFiles[] = {"meminfo",
                                         "vmstat",
                                         "loadavg",
                                         "pressure/memory",
                                         "sys/vm/overcommit_memory",
                                         "sys/vm/max_map_count",
                                         "sys/kernel/pid_max",
                                         "sys/kernel/threads-max",
                                         "sys/kernel/random/boot_id"};
constexpr const char* kCgroupFiles[] = {
    "memory.current", "memory.max",        "memory.peak",           "memory.stat",
    "memory.events",  "cgroup.procs",      "memory.pressure",       "memory.events.local",
    "pids.current",   "pids.max",          "memory.usage_in_bytes", "memory.limit_in_bytes",
    "memory.failcnt", "memory.oom_control"};

// The text of the section "=== NAME"; all of the input if it has none.
std::string_view section_of(std::string_view input, std::string_view name) {
  const std::string begin = "=== " + std::string{name} + "\n";
  const std::size_t at = input.find(begin);
  if (at == input.npos) return input.substr(0, input.find("=== "));
  input.remove_prefix(at + begin.size());
  return input.substr(0, input.find("\n=== "));
}

// A /proc and a cgroup of the input's files, as the roots of all readers.
void write_proc(std::string_view input) {
  const fs::path root = fs::path{directory()} / "proc-root", own = root / "proc" / "4242";
  const fs::path group = root / "cgroup" / "test";
  if (!fs::exists(root)) {
    for (const char* const made : {"pressure", "sys/vm", "sys/kernel/random"})
      fs::create_directories(root / "proc" / made);
    fs::create_directories(own / "task" / "4243");
    fs::create_directories(group);
    fs::create_directory_symlink("4242", root / "proc" / "self");
    system::Text{system::g_roots.proc} << (root / "proc").c_str();
    system::Text{system::g_roots.cgroup} << (root / "cgroup").c_str();
    system::Text{system::g_roots.sys} << root.c_str();
  }
  for (const char* const name : kProcessFiles) {
    write_file(own / name, section_of(input, name));
    write_file(own / "task" / "4243" / name, section_of(input, name));
  }
  for (const char* const name : kMachineFiles)
    write_file(root / "proc" / name, section_of(input, name));
  for (const char* const name : kCgroupFiles)
    for (const fs::path& in : {group, group.parent_path()})
      write_file(in / name, section_of(input, name));
}

bool read_limits(int process) {
  const InHook hook = OutsideHooks::in_hook();
  limit::Ceilings ceilings = limit::read_ceilings(hook);
  const auto directories = std::make_unique<limit::CgroupDirectories>();
  limit::read_cgroup(hook, ceilings, directories.get(), process);
  std::uint64_t figure = 0;
  limit::read_cgroup_usage(hook, *directories, figure);
  limit::read_cgroup_kills(hook, *directories, figure);
  const auto health = std::make_unique<session::Health>();
  limit::read_quick_health(hook, *directories, *health, process);
  const limit::StallCounters before = limit::read_slow_health(hook, *directories, *health, process);
  limit::read_available_memory(*health);
  limit::usage_of_killing_limit(*health).percent();
  limit::stalls_between(before, limit::read_stall_counters(hook, *directories, process));
  session::CountedLimits counted{};
  limit::read_task_limits(hook, counted);
  limit::read_mapping_limits(hook, counted);
  session::MemoryPools pools{};
  limit::read_memory_pools(hook, {true, true, 2 << 20}, pools);
  limit::is_in_initial_namespace();
  return ceilings.rss_bytes != 0;
}

bool proc(std::string_view input) {
  write_proc(input);
  const bool read = read_limits(0);
  read_limits(kPid);
  system::start_ticks(kPid);
  system::pid_namespace();
  std::uint8_t boot[16];
  system::boot_id(boot);
  std::vector<char> buffer(std::size_t{16} << 10);
  bundle::HeapAreas areas{kPid, buffer};
  for (bundle::HeapArea area; areas.next(area);)
    if (area.end < area.start) std::abort();
  const fs::path cgroup = deaths::own_cgroup().directory;
  deaths::oom_kills_in(cgroup);
  deaths::oom_kills_below(cgroup);
  deaths::system_oom_kills();
  deaths::limit_hits_in(cgroup);
  deaths::peak_usage_in(cgroup);
  deaths::processes_in(cgroup);
  deaths::pressure_of(cgroup);
  processes::read_meminfo();
  processes::ProgramSampler sampler{"/bin/true", {"true"}, RecordedArguments::all};
  sampler.started(kPid);
  return read;
}

bool symbols(std::string_view input) {
  const std::string path = write_file(directory() + "/library.so", input);
  // The mapped header of a module, which the file must have, too.
  std::array<char, 4096> header{};
  std::copy_n(input.begin(), std::min(input.size(), header.size()), header.begin());
  char name[256];
  bool found = false;
  for (const std::uint64_t value : {0x1000UL, 0x1139UL, 0x20000UL})
    found = symbols::name_in_file(OutsideHooks::in_hook(), path.c_str(),
                                  reinterpret_cast<std::uint64_t>(header.data()), value, name,
                                  sizeof name) ||
            found;
  return found;
}

// Lines as words with a NUL at the end of each.
std::string words_of(std::string_view input) {
  std::string words{input.substr(0, 1 << 16)};
  std::replace(words.begin(), words.end(), '\n', '\0');
  return words + '\0';
}

bool options(std::string_view input) {
  const std::string words = words_of(input);
  std::vector<const char*> environment;
  for (std::size_t at = 0; at < words.size(); at = words.find('\0', at) + 1)
    environment.push_back(words.data() + at);
  environment.push_back(nullptr);
  OptionProblems problems;
  read_options(environment.data(), problems);
  return problems.begin() == problems.end();
}

bool arguments(std::string_view input) {
  std::string words = words_of(input);
  const std::size_t bytes = session::mask_secrets(words.data(), words.size());
  if (bytes > words.size()) std::abort();  // it is masked in place
  return bytes == words.size();
}

constexpr std::string_view kJsonTokens[] = {"{",
                                            "}",
                                            "[",
                                            "]",
                                            ",",
                                            ":",
                                            "\"",
                                            "null",
                                            "true",
                                            "-1",
                                            "1e308",
                                            "18446744073709551616",
                                            "\\u0000",
                                            "\\ud800",
                                            "{}",
                                            "[]",
                                            "\"rank\":",
                                            "\"files\":",
                                            "\"verdict\":",
                                            "\"schema_version\":",
                                            "NaN",
                                            "../",
                                            "/dev/zero",
                                            "=== ranks.json\n",
                                            "=== environment.json\n",
                                            "=== recording.oomrec\n"};
constexpr std::string_view kTelemetryTokens[] = {"{",
                                                 "}",
                                                 "[",
                                                 "]",
                                                 ",",
                                                 ":",
                                                 "\"",
                                                 "\n",
                                                 "\r\n",
                                                 "'",
                                                 "\"\"",
                                                 "device_used_bytes",
                                                 "timestamp",
                                                 "event_type",
                                                 "metadata",
                                                 "{'a': ",
                                                 "True",
                                                 "nan",
                                                 "\xef\xbb\xbf",
                                                 "1e400",
                                                 "\"timestamp_ns\": ",
                                                 "\"schema_version\": 2"};
constexpr std::string_view kPickleTokens[] = {"(",        ".",
                                              "N",        "J\xff\xff\xff\xff",
                                              "K\x01",    "X\xff\x00\x00\x00",
                                              "]",        "a",
                                              "e",        "}",
                                              "s",        "u",
                                              ")",        "t",
                                              "q\x00",    "r\x00\x00\x00\x10",
                                              "h\x00",    "\x80\x02",
                                              "\x85",     "\x86",
                                              "\x87",     "\x88",
                                              "\x8a\x08", "\x8c\x05",
                                              "\x94",     "\x95"};
constexpr std::string_view kLogTokens[] = {"Out of memory: Killed process ",
                                           "oom-kill:constraint=",
                                           "Memory cgroup out of memory",
                                           "[  pid  ]   uid  tgid total_vm",
                                           "segfault at ",
                                           "Tasks state",
                                           "\n",
                                           " anon-rss:",
                                           "kB",
                                           "<6>",
                                           "[    1.0]",
                                           "4242",
                                           "victim",
                                           "task_memcg=/",
                                           "18446744073709551615"};
constexpr std::string_view kProcTokens[] = {"VmRSS:\t",
                                            "VmSize:",
                                            " kB\n",
                                            "Threads:",
                                            "CapEff:\t000001ffffffffff\n",
                                            ") S ",
                                            "(",
                                            "0::/test\n",
                                            "5:memory:/",
                                            "/../..",
                                            "some avg10=",
                                            "99999.99",
                                            "full",
                                            "oom_kill ",
                                            "[heap]\n",
                                            "7f0000000000-7f0004000000 rw-p 00000000 00:00 0 ",
                                            "ffffffffffffffff",
                                            "-",
                                            "MemAvailable:",
                                            "HugePages_Free:",
                                            "18446744073709551615",
                                            "max\n",
                                            "workingset_refault_anon ",
                                            "\n"};
constexpr std::string_view kOptionTokens[] = {"OOMREC_LIMIT=",
                                              "OOMREC_FAIL=",
                                              "OOMREC_LIMIT_GPU=",
                                              "OOMREC_WARN=",
                                              "malloc:nth=",
                                              "mmap:p=0.01,seed=7",
                                              "site=",
                                              "!",
                                              ";",
                                              "@cuda:1",
                                              "18446744073709551615",
                                              "%",
                                              "G",
                                              "\n"};
constexpr std::string_view kArgumentTokens[] = {"--password=",
                                                "-p",
                                                "--token\n",
                                                "Authorization: Bearer ",
                                                "https://user:",
                                                "@host/",
                                                "?token=",
                                                "&",
                                                "sk-live-",
                                                "{\"password\":\"",
                                                "\n",
                                                "Cookie: ",
                                                "key",
                                                "="};
constexpr std::string_view kElfTokens[] = {
    "\x7f"
    "ELF",
    "\x02\x01\x01", "\xff\xff\xff\xff", ".symtab"};

constexpr Target kTargets[] = {
    {"recording", recording, {}},
    {"bundle", bundle, kJsonTokens},
    {"telemetry", telemetry, kTelemetryTokens},
    {"snapshot", snapshot, kPickleTokens},
    {"json", json, kJsonTokens},
    {"csv", csv, kTelemetryTokens},
    {"log", log, kLogTokens},
    {"cgroup", cgroup, kLogTokens},
    {"proc", proc, kProcTokens},
    {"symbols", symbols, kElfTokens},
    {"options", options, kOptionTokens},
    {"arguments", arguments, kArgumentTokens},
};

}  // namespace

std::span<const Target> targets() { return kTargets; }

const Target* target_of(std::string_view name) {
  const auto found = std::find_if(std::begin(kTargets), std::end(kTargets),
                                  [&](const Target& target) { return target.name == name; });
  return found == std::end(kTargets) ? nullptr : found;
}

const std::string& directory() {
  static const std::string path = [] {
    std::string made = (fs::temp_directory_path() / "oomrec-fuzz-XXXXXX").string();
    if (mkdtemp(made.data()) == nullptr) throw std::runtime_error{"mkdtemp " + made};
    return made;
  }();
  return path;
}

void remove_files() { fs::remove_all(directory()); }

}  // namespace oomrec::fuzz
