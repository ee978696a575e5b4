#include "tools/deaths/counters.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "common/limits/ceilings.h"
#include "common/session/entries.h"
#include "common/system/files.h"
#include "common/system/text.h"
#include "tools/base/text.h"

namespace oomrec::tools::deaths {
namespace {

namespace fs = std::filesystem;

// A file in /proc or a cgroup. Empty if it cannot be read, or is longer than the buffer.
std::optional<std::string> text_of(const fs::path& file) {
  std::string text(std::size_t{64} << 10, '\0');
  const long bytes = system::read_file(file.c_str(), text.data(), text.size());
  if (bytes < 0 || static_cast<std::size_t>(bytes) + 1 >= text.size()) return std::nullopt;
  text.resize(static_cast<std::size_t>(bytes));
  return text;
}

std::optional<std::uint64_t> count_in(const fs::path& file, std::string_view name) {
  const auto text = text_of(file);
  const std::string_view value = text ? system::field(*text, name) : std::string_view{};
  return value.empty() ? std::nullopt : std::optional{system::number_in(value)};
}

std::optional<std::uint64_t> number_in_file(const fs::path& file) {
  const auto text = text_of(file);
  return text && !text->empty() ? std::optional{system::number_in(*text)} : std::nullopt;
}

std::optional<std::uint64_t> first_count(const fs::path& directory,
                                         std::initializer_list<const char*> files) {
  for (const char* const file : files)
    if (const auto count = count_in(directory / file, "oom_kill ")) return count;
  return std::nullopt;
}

// "some avg10=12.34 avg60=…": 1234.
std::uint32_t hundredths(std::string_view line) {
  constexpr std::string_view kName = "avg10=";
  const std::size_t at = line.find(kName);
  if (at == line.npos) return 0;
  std::string_view rest;
  const std::uint64_t whole = system::number_in(line.substr(at + kName.size()), &rest);
  const std::uint64_t part = rest.starts_with('.') ? system::number_in(rest.substr(1, 2)) : 0;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(whole * 100 + part, 10'000));
}

}  // namespace

MemoryCgroup own_cgroup() {
  limit::Ceilings unused;
  limit::CgroupDirectories cgroup{};
  limit::read_cgroup(OutsideHooks::in_hook(), unused, &cgroup);
  return {cgroup.own, cgroup.named};
}

std::optional<std::uint64_t> oom_kills_in(const fs::path& cgroup) {
  return first_count(cgroup, {"memory.events.local", "memory.events", "memory.oom_control"});
}

std::optional<std::uint64_t> oom_kills_below(const fs::path& cgroup) {
  return first_count(cgroup, {"memory.events", "memory.oom_control"});
}

std::optional<std::uint64_t> system_oom_kills() {
  return count_in(fs::path{system::g_roots.proc} / "vmstat", "oom_kill ");
}

std::optional<std::uint64_t> limit_hits_in(const fs::path& cgroup) {
  if (const auto hits = count_in(cgroup / "memory.events", "max ")) return hits;
  return number_in_file(cgroup / "memory.failcnt");
}

std::optional<std::uint64_t> peak_usage_in(const fs::path& cgroup) {
  if (const auto peak = number_in_file(cgroup / "memory.peak")) return peak;
  return number_in_file(cgroup / "memory.max_usage_in_bytes");
}

std::optional<std::vector<pid_t>> processes_in(const fs::path& cgroup) {
  const auto text = text_of(cgroup / "cgroup.procs");
  if (!text) return std::nullopt;
  std::vector<pid_t> processes;
  for (const std::string_view line : split(*text, '\n'))
    if (!line.empty()) processes.push_back(static_cast<pid_t>(system::number_in(line)));
  std::ranges::sort(processes);
  return processes;
}

Pressure pressure_of(const fs::path& cgroup) {
  auto text = cgroup.empty() ? std::nullopt : text_of(cgroup / "memory.pressure");
  if (!text) text = text_of(fs::path{system::g_roots.proc} / "pressure/memory");
  if (!text) return {};
  return {hundredths(system::field(*text, "some ")), hundredths(system::field(*text, "full "))};
}

std::uint64_t cgroup_limit_of(pid_t pid) {
  limit::Ceilings found;
  limit::read_cgroup(OutsideHooks::in_hook(), found, nullptr, pid);
  return found.cgroup_limit_bytes != session::kUnlimited ? found.cgroup_limit_bytes : 0;
}

}  // namespace oomrec::tools::deaths
