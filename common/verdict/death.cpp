// The verdict on a process that has ended, from its session and from evidence collected afterwards.
#include "common/text/text.h"
#include "common/verdict/death_facts.h"
#include "common/verdict/parts.h"

namespace oomrec::verdict {
namespace {

using session::Failure;

struct Signal {
  int number;
  std::string_view name;
  bool crash;  // raised by a fault of the program
};
constexpr Signal kSignals[] = {
    {1, "SIGHUP", false},   {2, "SIGINT", false},   {3, "SIGQUIT", false},  {4, "SIGILL", true},
    {5, "SIGTRAP", true},   {6, "SIGABRT", true},   {7, "SIGBUS", true},    {8, "SIGFPE", true},
    {9, "SIGKILL", false},  {10, "SIGUSR1", false}, {11, "SIGSEGV", true},  {12, "SIGUSR2", false},
    {13, "SIGPIPE", false}, {14, "SIGALRM", false}, {15, "SIGTERM", false}, {24, "SIGXCPU", false},
    {25, "SIGXFSZ", false}, {31, "SIGSYS", true},
};
constexpr int kSigKill = 9;
constexpr int kSigTerm = 15;

const Signal* signal_of(int number) noexcept {
  for (const Signal& signal : kSignals)
    if (signal.number == number) return &signal;
  return nullptr;
}

bool was_refused(const session::View& view) noexcept {
  Failure failure{};
  for (std::uint64_t i = 1; i < view.count(session::TableId::failures); ++i)
    if (view.read(session::TableId::failures, i, failure) &&
        (failure.flags & session::kFailureProbe) == 0)
      return true;
  return false;
}

VerdictCode code_of(const DeathFacts& facts) noexcept {
  switch (facts.killer()) {
    case Killer::cgroup:
      return VerdictCode::cgroup_oom_kill;
    case Killer::system:
      return VerdictCode::system_oom_kill;
    case Killer::none:
      break;
  }
  const Usage& usage = facts.usage;
  if (facts.exited) return VerdictCode::exited;
  if (facts.signal == 0 || facts.signal == kSigKill) {
    if (facts.has(session::kDeathEarlierBoot)) return VerdictCode::unknown;
    // mpirun, for example, kills its ranks without waiting for them.
    const bool dismissed = facts.has(session::kDeathEndedByLauncher) && facts.kernel_ruled_out();
    if (usage.near() && !dismissed) return VerdictCode::killed_near_limit;
    const bool external = dismissed || (facts.signal != 0 && facts.kernel_ruled_out());
    return external ? VerdictCode::killed_externally : VerdictCode::unknown;
  }
  if (facts.signal == kSigTerm && !facts.has(session::kDeathEndedByLauncher) &&
      (usage.cgroup.near() || usage.soft.near() || usage.machine.near() || facts.pressed())) {
    return VerdictCode::terminated_under_pressure;
  }
  if (facts.shared_memory_full()) return VerdictCode::shared_memory_full;
  const Signal* const signal = signal_of(facts.signal);
  return signal != nullptr && signal->crash ? VerdictCode::crashed : VerdictCode::killed_externally;
}

Certainty certainty_of(VerdictCode code, const DeathFacts& facts) noexcept {
  const bool named =
      static_cast<session::KernelLine>(facts.death.kernel_line_kind) != session::KernelLine::none;
  switch (code) {
    case VerdictCode::cgroup_oom_kill:
    case VerdictCode::system_oom_kill:
      return named ? Certainty::proven : Certainty::likely;
    case VerdictCode::exited:
      return Certainty::proven;
    case VerdictCode::killed_near_limit:
    case VerdictCode::terminated_under_pressure:
      return Certainty::possible;
    default:
      return Certainty::likely;
  }
}

// ", at 97 % of its cgroup's limit"
void add_limit_usage(text::Text& text, const Usage& usage) noexcept {
  const struct {
    const Level& level;
    std::string_view name;
  } rows[] = {{usage.cgroup_soon, "its cgroup's limit"},
              {usage.soft, "its soft limit"},
              {usage.machine, "the machine's RAM"},
              {usage.machine_soon, "the machine's memory and swap"}};
  for (const auto& row : rows) {
    if (!row.level.near()) continue;
    text.add(", at ").number(row.level.percent()).add(" % of ").add(row.name);
    return;
  }
  text.add(", under memory pressure");
}

void add_end(text::Text& text, const DeathFacts& facts, std::string_view outcome) noexcept {
  constexpr std::string_view kExited = "exited ";
  if (facts.signal != 0) {
    text.add(" was killed by ");
    add_signal(text, facts.signal);
  } else if (outcome.starts_with(kExited)) {
    text.add(" ended with exit status ").add(outcome.substr(kExited.size()));
  } else if (facts.exited) {
    text.add(" ended with exit status 0");
  } else {
    text.add(" ended in an unknown way");
  }
}

void add_reason(text::Text& text, VerdictCode code, const DeathFacts& facts,
                std::string_view outcome) noexcept {
  const Usage& usage = facts.usage;
  switch (code) {
    case VerdictCode::cgroup_oom_kill:
      text.add(" was killed by the kernel: its memory cgroup had reached its limit");
      if (usage.cgroup.bounded()) text.add(" of ").size(usage.cgroup.limit);
      return;
    case VerdictCode::system_oom_kill:
      text.add(" was killed by the kernel: the machine had no memory left");
      return;
    case VerdictCode::shared_memory_full:
      text.add(" died of SIGBUS: ");
      return add_shared_memory(text, facts);
    case VerdictCode::crashed:
      text.add(" crashed with ");
      return add_signal(text, facts.signal);
    default:
      break;
  }
  add_end(text, facts, outcome);
  if (code == VerdictCode::killed_near_limit || code == VerdictCode::terminated_under_pressure) {
    add_limit_usage(text, usage);
  } else if (code == VerdictCode::killed_externally) {
    text.add(", and not for lack of memory");
  }
}

void add_counter(Verdict& verdict, const DeathFacts& facts, Killer killer) noexcept {
  const session::Death& death = facts.death;
  const bool in_cgroup = facts.has(session::kDeathCgroupCounted);
  if (!in_cgroup && !facts.has(session::kDeathSystemCounted)) return;
  const bool rose = in_cgroup ? facts.cgroup_rose() : facts.system_rose();
  const std::uint64_t before =
      in_cgroup ? death.cgroup_oom_kills_before : death.system_oom_kills_before;
  const std::uint64_t after =
      in_cgroup ? death.cgroup_oom_kills_after : death.system_oom_kills_after;
  add_line(verdict, [&](text::Text& line) {
    line.add("the kernel's count of OOM kills ");
    line.add(!in_cgroup                               ? "on the machine"
             : facts.has(session::kDeathParentCgroup) ? "in the parent of its cgroup, which is gone"
                                                      : "in its cgroup");
    if (!rose) {
      line.add(": ").number(after).add(", unchanged since its last check");
      return;
    }
    line.add(" rose from ").number(before).add(" to ").number(after);
    if (facts.has(session::kDeathAtOnce)) line.add(" within 1 s of its end");
    if (facts.has(session::kDeathAlone)) line.add("; it was the only process there");
    if (facts.has(session::kDeathOthers)) line.add("; other processes died at the same time");
    if (killer == Killer::none) line.add(", but the killed process may be another");
  });
}

void add_levels(Verdict& verdict, const Usage& usage) noexcept {
  if (usage.cgroup.bounded()) {
    add_line(verdict, [&](text::Text& line) {
      line.add("cgroup: working set ").size(usage.cgroup.used).add(" at its last check");
      if (usage.unresident != 0)
        line.add(" + ").size(usage.unresident).add(" allocated and not yet resident");
      line.add(", ").number(usage.cgroup_soon.percent()).add(" % of ").size(usage.cgroup.limit);
    });
  } else if (usage.cgroup.limit == session::kUnlimited) {
    add_line(verdict, [](text::Text& line) { line.add("no limit on the memory of its cgroup"); });
  }
  if (usage.soft.bounded()) {
    add_line(verdict, [&](text::Text& line) {
      line.add("live ").size(usage.soft.used).add(", ").number(usage.soft.percent());
      line.add(" % of the soft limit ").size(usage.soft.limit);
    });
  }
  if (usage.machine.bounded()) {
    add_line(verdict, [&](text::Text& line) {
      line.add("machine: ").size(usage.machine.limit - usage.machine.used).add(" available of ");
      line.size(usage.machine.limit).add(" RAM at its last check");
    });
  }
}

void add_hundredths(text::Text& line, std::uint32_t value) noexcept {
  line.number(value / 100).add('.').number(value % 100, 2).add(" %");
}

void add_log(Verdict& verdict, const DeathFacts& facts) noexcept {
  const session::Death& death = facts.death;
  if (death.realtime_ns == 0) return;
  if (static_cast<session::KernelLine>(death.kernel_line_kind) != session::KernelLine::none) {
    add_line(verdict, [&](text::Text& line) {
      const std::string_view text{death.kernel_line, sizeof death.kernel_line};
      line.add("kernel: ").add(text.substr(0, text.find('\0')));
    });
  } else if (facts.has(session::kDeathEarlierBoot)) {
    add_line(verdict, [](text::Text& line) { line.add("the machine has rebooted since then"); });
  } else if (facts.has(session::kDeathLogRead)) {
    add_line(verdict, [](text::Text& line) {
      line.add("the kernel's log has no OOM kill of this process");
    });
  } else {
    add_line(verdict, [](text::Text& line) {
      line.add("the kernel's log could not be read, or not far enough back");
    });
  }
}

void add_evidence(Verdict& verdict, const DeathFacts& facts, Killer killer) noexcept {
  if (verdict.code == VerdictCode::shared_memory_full)
    return add_shared_memory_evidence(verdict, facts);
  if (facts.has(session::kDeathEndedByLauncher)) {
    add_line(verdict, [](text::Text& line) {
      line.add("another rank of its job had run out of memory before: the launcher ended this one");
    });
  }
  add_log(verdict, facts);
  add_counter(verdict, facts, killer);
  add_levels(verdict, facts.usage);
  if (facts.pressure_some != 0 || facts.pressure_full != 0) {
    add_line(verdict, [&](text::Text& line) {
      line.add("memory pressure, of the last 10 s: some ");
      add_hundredths(line, facts.pressure_some);
      line.add(", full ");
      add_hundredths(line, facts.pressure_full);
    });
  }
  if (facts.death.sender_pid != 0) {
    add_line(verdict, [&](text::Text& line) {
      line.add("the signal came from process ").signed_number(facts.death.sender_pid);
    });
  }
}

// Stores the limit that the summary names.
void set_limit(Verdict& verdict, const Usage& usage) noexcept {
  if (!is_death_caused_by_memory(verdict.code) || verdict.code == VerdictCode::system_oom_kill ||
      verdict.code == VerdictCode::shared_memory_full)
    return;
  const bool cgroup = verdict.code == VerdictCode::cgroup_oom_kill || usage.cgroup_soon.near();
  const Level& level = cgroup ? usage.cgroup : usage.soft;
  if (!level.bounded() || (!cgroup && !level.near())) return;
  verdict.limit = cgroup ? LimitKind::cgroup : LimitKind::soft;
  verdict.limit_bytes = level.limit;
  verdict.limit_used_bytes = level.used;
}

}  // namespace

void add_signal(text::Text& text, int number) noexcept {
  const Signal* const signal = signal_of(number);
  signal != nullptr ? text.add(signal->name)
                    : text.add("signal ").number(static_cast<std::uint64_t>(number));
}

void add_end(text::Text& text, const session::View& view, const End& end,
             std::string_view outcome) noexcept {
  add_end(text, DeathFacts{view, end, outcome}, outcome);
}

bool killed_by_kernel(const session::View& view, const End& end,
                      std::string_view outcome) noexcept {
  return end.death.realtime_ns != 0 && DeathFacts{view, end, outcome}.killer() != Killer::none;
}

void explain_death(Verdict& verdict, const session::View& view, const End& end,
                   std::string_view outcome) noexcept {
  const DeathFacts facts{view, end, outcome};
  verdict.code = code_of(facts);
  verdict.certainty = certainty_of(verdict.code, facts);
  set_limit(verdict, facts.usage);
  const std::string_view program = text::base_name(view.string(view.header().executable));
  text::Text summary{verdict.summary};
  summary.add(program.empty() ? "the process" : program);
  add_reason(summary, verdict.code, facts, outcome);
  summary.add("; it held ").size(facts.usage.held);
  if (!was_refused(view)) summary.add("; no refused request is on record");
  add_evidence(verdict, facts, facts.killer());
}

}  // namespace oomrec::verdict
