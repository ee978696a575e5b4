#include "common/limits/stalls.h"

#include <string_view>

#include "common/limits/cgroup.h"
#include "common/limits/process_files.h"
#include "common/system/files.h"
#include "common/system/text.h"
#include "common/system/units.h"

namespace oomrec::limit {
namespace {

using session::Stalls;

constexpr std::uint64_t kTickNs = kSecondNs / 100;  // USER_HZ

bool has_fields(std::string_view stat) noexcept { return !system::stat_field(stat, 3).empty(); }

// Field 11 is the number of minor faults of ended children, field 12 that of major faults, field 42
// the time spent waiting for block I/O.
[[gnu::noinline]] void read_process(int process, StallCounters& out) noexcept {
  char text[512];
  if (read_process_file(process, "/stat", text, sizeof text, has_fields) <= 0) return;
  out.children_faults = system::number_in(system::stat_field(text, 11));
  out.major_faults = system::number_in(system::stat_field(text, 12));
  out.blocked_ns = system::number_in(system::stat_field(text, 42)) * kTickNs;
}

// Refaults are in the first half of both versions' memory.stat. Kernels before 5.9 have one line
// for both kinds.
[[gnu::noinline]] void read_refaults(const char* directory, StallCounters& out) noexcept {
  char text[1408];
  if (read_cgroup_file(directory, "/memory.stat", text, sizeof text) <= 0) return;
  for (const std::string_view name :
       {"workingset_refault_anon ", "workingset_refault_file ", "workingset_refault "})
    out.cgroup_refaults += system::number_in(system::field(text, name));
}

[[gnu::noinline]] void read_cgroup_pressure(const char* directory, StallCounters& out) noexcept {
  char text[256];
  if (read_cgroup_file(directory, "/memory.pressure", text, sizeof text) <= 0) return;
  out.cgroup_some = hundredths(system::field(text, "some avg10="));
  out.cgroup_full = hundredths(system::field(text, "full avg10="));
}

std::uint64_t per_second(std::uint64_t count, const Stalls& stalls) noexcept {
  constexpr std::uint64_t kMsNs = 1'000'000;
  const std::uint64_t window_ms = stalls.window_ns / kMsNs;
  return window_ms == 0 ? 0 : count * 1000 / window_ms;
}

}  // namespace

std::uint32_t hundredths(std::string_view text) noexcept {
  std::string_view rest;
  const std::uint64_t whole = system::number_in(text, &rest);
  if (!rest.empty()) rest.remove_prefix(1);
  return static_cast<std::uint32_t>(whole * 100 + system::number_in(rest.substr(0, 2)));
}

StallCounters read_stall_counters(InHook, const CgroupDirectories& cgroup, int process) noexcept {
  StallCounters out;
  read_process(process, out);
  if (cgroup.own[0] != '\0') {
    read_refaults(cgroup.own, out);
    if (!cgroup.v1) read_cgroup_pressure(cgroup.own, out);
  }
  out.time_ns = system::monotonic_ns();
  return out;
}

session::Stalls stalls_between(const StallCounters& before, const StallCounters& now) noexcept {
  const auto grown = [](std::uint64_t from, std::uint64_t to) noexcept {
    return to > from ? to - from : 0;
  };
  if (before.time_ns == 0) return {};
  return {grown(before.time_ns, now.time_ns),
          grown(before.major_faults, now.major_faults),
          grown(before.blocked_ns, now.blocked_ns),
          grown(before.cgroup_refaults, now.cgroup_refaults),
          now.cgroup_some,
          now.cgroup_full};
}

bool is_stalled(const Stalls& stalls, const MachinePressure& machine) noexcept {
  if (stalls.cgroup_full >= 2000) return true;
  constexpr std::uint64_t kFaults = 50, kRefaults = 50;  // a second
  constexpr std::uint64_t kFewFaults = 10;               // a second, of a slow disk
  const std::uint64_t faults = faults_per_second(stalls);
  const bool blocked = stalls.blocked_ns >= stalls.window_ns / 5 && faults >= kFewFaults;
  const bool cgroup_waits =
      per_second(stalls.cgroup_refaults, stalls) >= kRefaults || stalls.cgroup_some >= 1000;
  const bool machine_waits = machine.full >= 1000 || machine.some >= 5000;
  return (faults >= kFaults || blocked) && (cgroup_waits || machine_waits);
}

bool is_thrashing(const Stalls& stalls, const MachinePressure& machine) noexcept {
  if (stalls.cgroup_full >= 5000) return true;
  constexpr std::uint64_t kFaults = 500, kRefaults = 500;  // a second
  const bool all_wait = machine.full >= 2000;
  const bool cgroup_waits =
      per_second(stalls.cgroup_refaults, stalls) >= kRefaults && machine.some >= 1000;
  return faults_per_second(stalls) >= kFaults && (all_wait || cgroup_waits);
}

std::uint64_t faults_per_second(const Stalls& stalls) noexcept {
  return per_second(stalls.major_faults, stalls);
}

}  // namespace oomrec::limit
