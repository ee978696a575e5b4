#include "tests/fuzz/target.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <new>
#include <stdexcept>
#include <vector>

#include "common/options/options.h"
#include "common/session/secrets.h"
#include "common/system/hook_scope.h"
#include "recorder/symbols/file_symbols.h"
#include "tools/base/csv.h"
#include "tools/base/error.h"
#include "tools/base/json.h"
#include "tools/base/json_budget.h"
#include "tools/bundles/store/bundles.h"
#include "tools/commands/commands.h"
#include "tools/deaths/cgroup_account.h"
#include "tools/deaths/kernel_faults.h"
#include "tools/deaths/kernel_kills.h"
#include "tools/deaths/kernel_log.h"
#include "tools/formats/pytorch/pickle_reader.h"
#include "tools/formats/pytorch/snapshot.h"

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
      {commands::info_command, nullptr},
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

bool symbols(std::string_view input) {
  const std::string path = write_file(directory() + "/library.so", input);
  // The mapped header of a module, which the file must have, too.
  std::array<char, 4096> header{};
  std::copy_n(input.begin(), std::min(input.size(), header.size()), header.begin());
  char name[256];
  bool found = false;
  for (const std::uint64_t value : {0x1000, 0x1139, 0x20000})
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
