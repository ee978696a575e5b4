// The verdict on a process that has ended, from its session and from evidence collected afterwards.
#include <algorithm>

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
constexpr std::uint64_t kWorthSaying = std::uint64_t{1} << 20;  // of differences between figures

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

bool is_kill(int signal) noexcept { return signal == 0 || signal == kSigKill; }

// It was ended because of another process that had died before.
bool was_ended_for_another(const DeathFacts& facts) noexcept {
  return facts.has(session::kDeathEndedByLauncher) || facts.has(session::kDeathAfterSibling);
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
  const bool may_be_sent = is_kill(facts.signal) || facts.signal == kSigTerm;
  if (facts.killed_on_request() && is_kill(facts.signal) && !facts.exited)
    return VerdictCode::killed_externally;
  if (facts.has_informant() && may_be_sent) return VerdictCode::user_space_oom_kill;
  if (facts.exited) return VerdictCode::exited;
  if (facts.has_other_reason() && may_be_sent) return VerdictCode::killed_externally;
  if (facts.has_user_killer() && may_be_sent) {
    return facts.user_killer() == session::UserKiller::parent ? VerdictCode::terminated_by_parent
                                                              : VerdictCode::user_space_oom_kill;
  }
  const bool short_of_memory = facts.near_limit() || facts.stalled();
  const bool for_another = was_ended_for_another(facts);
  if ((short_of_memory || facts.is_perhaps_for_memory()) && facts.sent_by_parent() &&
      !for_another && (facts.signal == kSigKill || facts.signal == kSigTerm))
    return VerdictCode::terminated_by_parent;
  if (is_kill(facts.signal)) {
    if (facts.has(session::kDeathEarlierBoot)) return VerdictCode::unknown;
    // mpirun, for example, kills its ranks without waiting for them.
    const bool dismissed = for_another && facts.kernel_ruled_out();
    if (short_of_memory && !dismissed) return VerdictCode::killed_near_limit;
    const bool external = dismissed || (facts.signal != 0 && facts.kernel_ruled_out());
    return external ? VerdictCode::killed_externally : VerdictCode::unknown;
  }
  if (facts.signal == kSigTerm && !for_another && short_of_memory)
    return VerdictCode::terminated_under_pressure;
  if (facts.shared_memory_full()) return VerdictCode::shared_memory_full;
  const Signal* const signal = signal_of(facts.signal);
  return signal != nullptr && signal->crash ? VerdictCode::crashed : VerdictCode::killed_externally;
}

Certainty certainty_of(VerdictCode code, const DeathFacts& facts) noexcept {
  switch (code) {
    case VerdictCode::cgroup_oom_kill:
    case VerdictCode::system_oom_kill:
      return facts.is_named_by_kernel() ? Certainty::proven : Certainty::likely;
    case VerdictCode::exited:
      return Certainty::proven;
    case VerdictCode::killed_near_limit: {
      const bool by_kernel = facts.signal == kSigKill && !facts.kernel_ruled_out();
      return by_kernel && facts.usage.at_limit() ? Certainty::likely : Certainty::possible;
    }
    case VerdictCode::terminated_by_parent:
      return facts.has_user_killer() ? Certainty::likely : Certainty::possible;
    case VerdictCode::terminated_under_pressure:
    case VerdictCode::unknown:
      return Certainty::possible;
    case VerdictCode::user_space_oom_kill:
      return facts.has_informant() ? Certainty::proven : Certainty::likely;
    case VerdictCode::killed_externally:
      if (facts.has_other_reason() || facts.killed_on_request()) return Certainty::proven;
      return facts.death.sender_pid != 0 && facts.memory_ruled_out() && !facts.has_unknown_reason()
                 ? Certainty::proven
                 : Certainty::likely;
    default:
      return Certainty::likely;
  }
}

// " at 97 % of its cgroup's limit"
void add_limit_usage(text::Text& text, const DeathFacts& facts) noexcept {
  const Usage& usage = facts.usage;
  if (usage.cgroup.near())
    text.add(" at ").number(usage.cgroup.percent()).add(" % of its cgroup's limit");
  else if (usage.machine.near())
    text.add(" at ").number(usage.machine.percent()).add(" % of the machine's RAM");
  else if (facts.near_limit())
    text.add(" after its cgroup had reached its limit");
  else
    text.add(" while it waited for memory");
}

constexpr std::string_view kExited = "exited ";

bool was_seen(const DeathFacts& facts, std::string_view outcome) noexcept {
  return facts.signal != 0 || facts.exited || outcome.starts_with(kExited);
}

void add_end(text::Text& text, const DeathFacts& facts, std::string_view outcome) noexcept {
  if (facts.signal != 0) {
    text.add(" was killed by ");
    add_signal(text, facts.signal);
  } else if (outcome.starts_with(kExited)) {
    text.add(" ended with exit status ").add(outcome.substr(kExited.size()));
  } else if (facts.exited) {
    text.add(" ended with exit status 0");
  } else {
    text.add(" ended");
  }
}

// "by the kernel", as far as that is known.
void add_kernel_kill(text::Text& text, const DeathFacts& facts) noexcept {
  text.add(facts.is_named_by_kernel() ? " was killed by the kernel: "
                                      : " was probably killed by the kernel: ");
}

// Why the kernel killed by the machine's rules.
std::string_view machine_reason(session::KernelLine line) noexcept {
  switch (line) {
    case session::KernelLine::cpuset:
      return "the memory nodes of a cpuset were full";
    case session::KernelLine::policy:
      return "the memory nodes of a memory policy were full";
    case session::KernelLine::page_fault:
      return "a page fault found no memory, whatever the machine had left";
    case session::KernelLine::unscoped:
      return "its log does not say whether a cgroup or the machine had no memory left";
    default:
      return "the machine had no memory left";
  }
}

struct UserKillerWords {
  session::UserKiller killer;
  std::string_view words;
};
constexpr UserKillerWords kUserKillers[] = {
    {session::UserKiller::systemd_oomd, "systemd-oomd, which ends processes when memory is short"},
    {session::UserKiller::earlyoom, "earlyoom, which ends processes when memory is short"},
    {session::UserKiller::kubelet,
     "the kubelet, which evicts pods when the node's memory is short"},
    {session::UserKiller::lmkd, "lmkd, which ends processes when memory is short"},
    {session::UserKiller::nohang, "nohang, which ends processes when memory is short"},
    {session::UserKiller::talos, "Talos, which ends cgroups when memory is short"},
};

// The daemon's log names the process, even if nobody saw the signal.
void add_user_space_kill(text::Text& text, const DeathFacts& facts) noexcept {
  text.add(facts.exited ? " was ended by " : " was killed by ");
  if (facts.signal != 0) {
    add_signal(text, facts.signal);
    text.add(" from ");
  }
  if (facts.has_informant())
    text.add(facts.informant()).add(", which said that memory was the reason");
  for (const UserKillerWords& row : kUserKillers)
    if (row.killer == facts.user_killer()) text.add(row.words);
}

void add_reason(text::Text& text, const Verdict& verdict, const DeathFacts& facts,
                std::string_view outcome) noexcept {
  switch (verdict.code) {
    case VerdictCode::cgroup_oom_kill:
      add_kernel_kill(text, facts);
      text.add("its memory cgroup had reached its limit");
      if (facts.usage.cgroup.bounded()) text.add(" of ").size(facts.usage.cgroup.limit);
      return;
    case VerdictCode::system_oom_kill:
      add_kernel_kill(text, facts);
      text.add(machine_reason(facts.kernel_line()));
      return;
    case VerdictCode::shared_memory_full:
      text.add(" died of SIGBUS: ");
      return add_shared_memory(text, facts);
    case VerdictCode::crashed:
      text.add(" crashed with ");
      return add_signal(text, facts.signal);
    case VerdictCode::user_space_oom_kill:
      return add_user_space_kill(text, facts);
    case VerdictCode::killed_externally:
      if (!facts.killed_on_request()) break;
      text.add(" was killed by the kernel on request (SysRq f), whatever memory was left");
      return;
    default:
      break;
  }
  add_end(text, facts, outcome);
  switch (verdict.code) {
    case VerdictCode::terminated_by_parent:
      text.add(" from its parent");
      if (facts.has_user_killer()) {
        text.add(", which ends workers that take too much memory");
        break;
      }
      if (!facts.near_limit() && !facts.stalled()) {
        text.add(", possibly at a limit of the parent's own");
        break;
      }
      [[fallthrough]];
    case VerdictCode::killed_near_limit:
    case VerdictCode::terminated_under_pressure:
      add_limit_usage(text, facts);
      text.add(verdict.certainty == Certainty::likely
                   ? ", probably for lack of memory"
                   : ", possibly for lack of memory: nothing excludes it");
      break;
    case VerdictCode::killed_externally:
      if (facts.has_other_reason())
        text.add(" from ").add(facts.informant()).add(", which gave another reason than memory");
      else if (facts.has(session::kDeathEndedByLauncher))
        text.add(", because another rank of its job had run out of memory");
      else if (facts.has(session::kDeathAfterSibling) && facts.sent_by_parent())
        text.add(" from its parent, which had lost another child shortly before");
      else if (facts.has_unknown_reason())
        text.add(" from its parent, for a reason that is not known");
      else if (facts.memory_ruled_out())
        text.add(", and not for lack of memory");
      break;
    default:
      break;
  }
  if (!was_seen(facts, outcome)) text.add("; nobody saw how");
}

// Stores the limit that the summary names.
void set_limit(Verdict& verdict, const DeathFacts& facts) noexcept {
  const Level& level = facts.usage.cgroup;
  const bool killed = verdict.code == VerdictCode::cgroup_oom_kill;
  const bool near = level.near() && (verdict.code == VerdictCode::killed_near_limit ||
                                     verdict.code == VerdictCode::terminated_by_parent ||
                                     verdict.code == VerdictCode::terminated_under_pressure);
  if (!level.bounded() || !(killed || near)) return;
  verdict.limit = LimitKind::cgroup;
  verdict.limit_bytes = level.limit;
  // The kernel kills in a cgroup only at its limit, whatever an older reading says.
  verdict.limit_used_bytes = killed && !level.near() ? level.limit : level.used;
}

// "; it held 640.0 MiB, 12.0 MiB of it resident", "; it held 4.0 KiB; 230.0 MiB were resident"
void add_held(text::Text& text, const Usage& usage) noexcept {
  text.add("; it held ").size(usage.held);
  const std::uint64_t part = std::max(usage.held, usage.resident) / 4;
  if (usage.resident == 0 || part < kWorthSaying) return;
  if (usage.held > usage.resident + part)
    text.add(", ").size(usage.resident).add(" of it resident at its last check");
  else if (usage.resident > usage.held + part)
    text.add("; ").size(usage.resident).add(" were resident");
}

// "; it was inside mmap of 500.0 MiB"
void add_in_flight(text::Text& text, const session::View& view) noexcept {
  std::uint64_t most = 0;
  Api api = Api::none;
  view.for_each_in_flight([&](const session::InFlight& request, std::uint32_t) noexcept {
    if (request.bytes <= most) return;
    most = request.bytes;
    api = static_cast<Api>(request.api);
  });
  if (most != 0) text.add("; it was inside ").add(name_of(api)).add(" of ").size(most);
}

}  // namespace

void add_signal(text::Text& text, int number) noexcept {
  const Signal* const signal = signal_of(number);
  signal != nullptr ? text.add(signal->name)
                    : text.add("signal ").number(static_cast<std::uint64_t>(number));
}

void add_end(text::Text& text, const session::View& view, const End& end,
             std::string_view outcome) noexcept {
  const DeathFacts facts{view, end, outcome};
  add_end(text, facts, outcome);
  if (!was_seen(facts, outcome)) text.add(", nobody saw how,");
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
  set_limit(verdict, facts);
  const std::string_view program = text::base_name(view.string(program_of(view.header())));
  text::Text summary{verdict.summary};
  summary.add(program.empty() ? "the process" : program);
  add_reason(summary, verdict, facts, outcome);
  if (view.header().off_reason != 0) {
    summary.add("; it was not recorded");
  } else {
    is_mostly_unrecorded(facts) ? add_resident(summary, facts) : add_held(summary, facts.usage);
    if (!facts.exited) add_in_flight(summary, view);
    if (!was_refused(view)) summary.add("; no refused request is on record");
  }
  add_death_evidence(verdict, facts);
}

}  // namespace oomrec::verdict
