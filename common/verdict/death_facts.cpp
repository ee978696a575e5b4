#include "common/verdict/death_facts.h"

#include <algorithm>

#include "common/residency/rows.h"
#include "common/verdict/parts.h"
#include "common/verdict/verdict.h"

namespace oomrec::verdict {
namespace {

using session::kUnlimited;

constexpr int kSigBus = 7;
constexpr int kSigKill = 9;

std::uint64_t live_in(const session::View& view, Space space) noexcept {
  const std::int64_t live = view.totals(space).live_bytes;
  return live > 0 ? static_cast<std::uint64_t>(live) : 0;
}

// The 9 of "signal 9"; 0 for other outcomes.
int signal_in(std::string_view outcome) noexcept {
  constexpr std::string_view kSignal = "signal ";
  return outcome.starts_with(kSignal)
             ? static_cast<int>(system::number_in(outcome.substr(kSignal.size())))
             : 0;
}

std::uint64_t less(std::uint64_t from, std::uint64_t bytes) noexcept {
  return from > bytes ? from - bytes : 0;
}

// On the clock of Death; 0: the process never checked.
std::uint64_t own_realtime_ns(const session::Header& header) noexcept {
  const std::uint64_t time_ns = header.health.time_ns.load();
  return time_ns == 0 ? 0 : header.start_realtime_ns + (time_ns - header.start_monotonic_ns);
}

}  // namespace

Usage::Usage(const session::View& view, const End& end) noexcept {
  const session::Header& header = view.header();
  for (std::size_t i = 0; i < kSpaceCount; ++i)
    if (is_on_host(static_cast<Space>(i))) held = add(held, live_in(view, static_cast<Space>(i)));
  const std::uint64_t live = add(live_in(view, Space::heap), live_in(view, Space::map));
  soft = {live, header.soft_limit_bytes.load()};
  const std::uint64_t own_ns = own_realtime_ns(header);
  const std::uint64_t outside_ns = end.levels.realtime_ns;
  if (own_ns != 0) read_own(header, live);
  if (outside_ns > own_ns) read_outside(header, end.levels);
  if (died_in_another_cgroup(end.death)) cgroup = {};
  read_account(end.account);
  reached = {std::max(cgroup.used, end.levels.resident_peak_bytes), cgroup.limit};
  hits = less(end.levels.limit_hits_after, end.levels.limit_hits_before);
  unresident = resident != 0 ? less(live, resident) : 0;
  swapped = header.health.swap_bytes;
  read_look(view, end.account, live);
  // Otherwise the death was only found, perhaps much later.
  const bool is_timed =
      (end.death.flags & session::kDeathWaited) != 0 || end.death.kernel_line_kind != 0;
  if (is_timed && (own_ns | outside_ns) != 0)
    age_ns = less(end.death.realtime_ns, std::max(own_ns, outside_ns));
}

void Usage::read_own(const session::Header& header, std::uint64_t live) noexcept {
  const session::Health& health = header.health;
  resident = health.rss_bytes;
  freed = less(health.live_bytes, live);
  grown = health.live_bytes != 0 ? less(live, health.live_bytes) : 0;
  cgroup = {less(health.cgroup_used_bytes, freed), health.cgroup_limit_bytes};
  set_machine(header, add(health.available_bytes, health.available_bytes != 0 ? freed : 0));
}

// Between the look and the end a program touches memory without a call. What it had at a kill by
// the kernel's report, beyond what the look and later requests explain, is of what was untouched.
void Usage::read_look(const session::View& view, const session::CgroupAccount& account,
                      std::uint64_t live) noexcept {
  const session::Residency* const look = view.residency();
  if (look == nullptr && !account.is_own_at_kill()) return;
  std::uint64_t in_memory = residency::held_in_memory(view, live);
  if (account.is_own_at_kill()) {
    constexpr auto kFiles = static_cast<std::size_t>(session::ResidentKind::files);
    const std::uint64_t own = add(account.own_anonymous_bytes + account.own_shared_bytes, swapped);
    const std::uint64_t explained = look == nullptr
                                        ? own
                                        : add(less(look->touched_bytes, look->kind_bytes[kFiles]),
                                              less(live, look->live_bytes));
    in_memory =
        std::min(add(in_memory, std::min(less(own, explained), less(live, in_memory))), own);
  }
  unresident = less(live, in_memory);
  held = add(less(held, live), in_memory);
  is_in_memory = true;
}

// The reading replaces the process' own, as far as it has the figure.
void Usage::read_outside(const session::Header& header, const session::EndLevels& levels) noexcept {
  freed = grown = 0;
  if (levels.resident_bytes != 0) resident = levels.resident_bytes;
  if (levels.cgroup_limit_bytes != 0)
    cgroup = {levels.cgroup_used_bytes, levels.cgroup_limit_bytes};
  if (levels.available_bytes != 0) set_machine(header, levels.available_bytes);
}

// The kernel's report of the kill has the figures of the cgroup that was full, whatever an older
// reading says, or could not read. Another account has the limit after the end: it may have been
// set since.
void Usage::read_account(const session::CgroupAccount& account) noexcept {
  if (account.scope != static_cast<std::uint32_t>(session::AccountScope::cgroup) ||
      account.limit_bytes == 0)
    return;
  if (account.is_at_kill()) cgroup.used = account.usage_bytes;
  cgroup.limit = account.limit_bytes;
}

void Usage::set_machine(const session::Header& header, std::uint64_t available) noexcept {
  if (available != 0) machine = {less(header.ram_bytes, available), header.ram_bytes};
}

bool died_in_another_cgroup(const session::Death& death) noexcept {
  const bool is_by_pid = (death.flags & session::kDeathLineByName) == 0;
  const bool is_counted = (death.flags & session::kDeathCgroupCounted) != 0 &&
                          (death.flags & session::kDeathParentCgroup) == 0;
  return death.kernel_line_kind == static_cast<std::uint32_t>(session::KernelLine::cgroup) &&
         is_by_pid && is_counted && death.cgroup_oom_kills_after <= death.cgroup_oom_kills_before;
}

DeathFacts::DeathFacts(const session::View& view, const End& end, std::string_view outcome) noexcept
    : header(view.header()),
      death(end.death),
      levels(end.levels),
      account(end.account),
      usage(view, end) {
  if (has(session::kDeathWaited)) {
    signal = death.wait_status & 0x7f;  // as WTERMSIG
    exited = signal == 0;
  } else if (const auto crash = header.crash.signal.load(); crash != 0) {
    signal = static_cast<int>(crash);
  } else {
    signal = signal_in(outcome);
    exited = outcome == name_of(OutcomeKind::recovered) ||
             outcome.starts_with(name_of(OutcomeKind::exited));
  }
  stalls = levels.stalls.window_ns != 0 ? levels.stalls : header.stalls;
  pressure = {std::max(header.health.pressure_some.load(), death.pressure_some),
              std::max(header.health.pressure_full.load(), death.pressure_full)};
}

Killer DeathFacts::killer() const noexcept {
  if (exited || (signal != 0 && signal != kSigKill)) return Killer::none;
  const Killer counted = is_counted_for_machine() ? Killer::system : Killer::cgroup;
  switch (kernel_line()) {
    case session::KernelLine::none:
      break;
    case session::KernelLine::cgroup:
      return Killer::cgroup;
    case session::KernelLine::unscoped:
      return cgroup_rose() ? counted : Killer::system;
    case session::KernelLine::sysrq:
      return Killer::none;
    default:
      return Killer::system;
  }
  const bool others = has(session::kDeathOthers);
  const bool just_this = has(session::kDeathAtOnce) && !others;
  // Without a signal, its parent alone saw how it ended: it vanished when the counter rose.
  const bool it_alone = just_this || (signal == kSigKill && has(session::kDeathAlone) && !others);
  if (cgroup_rose() && it_alone) return counted;
  // A machine has many cgroups: its counter is proof only if its memory was short.
  const bool by_machine = !has(session::kDeathCgroupCounted) && system_rose() && just_this;
  return by_machine && signal == kSigKill && usage.machine.near() ? Killer::system : Killer::none;
}

bool DeathFacts::is_helper_named_by_kernel() const noexcept {
  constexpr std::string_view kBeforePid = "Killed process ";
  const std::string_view line{death.kernel_line, sizeof death.kernel_line};
  const std::size_t at = line.find(kBeforePid);
  if (!has_kernel_line() || has(session::kDeathLineByName) || at == line.npos) return false;
  const std::uint64_t named = system::number_in(line.substr(at + kBeforePid.size()));
  const std::int32_t helper = header.helper_pid;
  return helper > 0 && named == static_cast<std::uint64_t>(helper) &&
         named != static_cast<std::uint64_t>(header.pid);
}

bool DeathFacts::shared_memory_full() const noexcept {
  constexpr int kBadAddress = 2;  // BUS_ADRERR
  const session::SharedMemory& shared = header.shared;
  const bool recorded = header.crash.signal.load() != 0;
  const bool seen = has(session::kDeathWaited) || recorded;
  const bool sent = death.sender_pid != 0 || (recorded && header.crash.code != kBadAddress);
  return signal == kSigBus && seen && !sent && shared.time_ns.load() != 0 &&
         (shared.too_small() || has(session::kDeathSharedFull));
}

bool DeathFacts::kernel_ruled_out() const noexcept {
  if (has(session::kDeathLogRead)) return true;
  return !cgroup_rose() && (has(session::kDeathCgroupCounted) || usage.far());
}

}  // namespace oomrec::verdict
