// The verdict on a process that has ended, from its session and from evidence collected afterwards.
#include <algorithm>

#include "common/text/text.h"
#include "common/verdict/death_facts.h"
#include "common/verdict/parts.h"
#include "common/verdict/rules.h"
#include "common/verdict/user_killers.h"

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

// It was ended because of another process that had died before, or that stopped.
bool was_ended_for_another(const DeathFacts& facts) noexcept {
  return facts.has(session::kDeathEndedByLauncher) || facts.has(session::kDeathAfterSibling) ||
         facts.was_stopped();
}

bool is_crash(int number) noexcept {
  const Signal* const signal = signal_of(number);
  return signal != nullptr && signal->crash;
}

bool is_term(int signal) noexcept { return signal == kSigTerm; }

bool may_be_sent(const DeathFacts& facts) noexcept {
  return is_kill(facts.signal) || is_term(facts.signal);
}

bool is_short_of_memory(const DeathFacts& facts) noexcept {
  return facts.near_limit() || facts.stalled();
}

// mpirun, for example, kills its ranks without waiting for them.
bool was_dismissed(const DeathFacts& facts) noexcept {
  return was_ended_for_another(facts) && facts.kernel_ruled_out();
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

// The daemon's log names the process, even if the signal is unknown.
void add_user_space_kill(text::Text& text, const DeathFacts& facts, std::string_view) noexcept {
  text.add(facts.exited ? " was ended by " : " was killed by ");
  if (facts.signal != 0) {
    add_signal(text, facts.signal);
    text.add(" from ");
  }
  if (facts.has_informant())
    text.add(facts.informant()).add(", which said that memory was the reason");
  for (const UserKillerRow& row : kUserKillers)
    if (row.killer == facts.user_killer()) text.add(row.words);
}

// A sentence's end, behind the program's name.
using Tell = void (*)(text::Text&, const DeathFacts&, std::string_view outcome) noexcept;

void tell_limit(text::Text& text, const DeathFacts& facts, Certainty certainty) noexcept {
  add_limit_usage(text, facts);
  text.add(certainty == Certainty::likely ? ", probably for lack of memory"
                                          : ", possibly for lack of memory: nothing excludes it");
}

void tell_outside(text::Text& text, const DeathFacts& facts, std::string_view outcome) noexcept {
  add_end(text, facts, outcome);
  if (facts.has(session::kDeathEndedByLauncher))
    text.add(", because another rank of its job had run out of memory");
  else if (facts.has(session::kDeathAfterSibling) && facts.sent_by_parent())
    text.add(" from its parent, which had lost another child shortly before");
  else if (facts.was_stopped())
    text.add(" from its parent, which was about to stop");
  else if (facts.has_unknown_reason())
    text.add(" from its parent, for a reason that is not known");
  else if (facts.memory_ruled_out())
    text.add(", and not for lack of memory");
}

Certainty as_named_by_kernel(const DeathFacts& facts) noexcept {
  return facts.is_named_by_kernel() ? Certainty::proven : Certainty::likely;
}

Certainty as_near_limit(const DeathFacts& facts) noexcept {
  const bool by_kernel = facts.signal == kSigKill && !facts.kernel_ruled_out();
  return by_kernel && facts.usage.at_limit() ? Certainty::likely : Certainty::possible;
}

Certainty as_sent(const DeathFacts& facts) noexcept {
  return facts.death.sender_pid != 0 && facts.memory_ruled_out() && !facts.has_unknown_reason()
             ? Certainty::proven
             : Certainty::likely;
}

template <Certainty certainty>
Certainty always(const DeathFacts&) noexcept {
  return certainty;
}
constexpr auto proven = always<Certainty::proven>;
constexpr auto likely = always<Certainty::likely>;
constexpr auto possible = always<Certainty::possible>;

struct Rule {
  RuleText text;
  bool (*applies)(const DeathFacts&) noexcept;
  Certainty (*certainty)(const DeathFacts&) noexcept;
  Tell tell;
};

constexpr Rule kRules[] = {
    {{"cgroup", "the kernel killed it in a cgroup that was full", VerdictCode::cgroup_oom_kill},
     [](const DeathFacts& facts) noexcept { return facts.killer() == Killer::cgroup; },
     as_named_by_kernel,
     [](text::Text& text, const DeathFacts& facts, std::string_view) noexcept {
       add_kernel_kill(text, facts);
       text.add("its memory cgroup had reached its limit");
       if (facts.usage.cgroup.bounded()) text.add(" of ").size(facts.usage.cgroup.limit);
     }},
    {{"machine", "the kernel killed it by the machine's rules", VerdictCode::system_oom_kill},
     [](const DeathFacts& facts) noexcept { return facts.killer() == Killer::system; },
     as_named_by_kernel,
     [](text::Text& text, const DeathFacts& facts, std::string_view) noexcept {
       add_kernel_kill(text, facts);
       text.add(machine_reason(facts.kernel_line()));
     }},
    {{"on_request", "the kernel killed it by SysRq f", VerdictCode::killed_externally},
     [](const DeathFacts& facts) noexcept {
       return facts.killed_on_request() && is_kill(facts.signal) && !facts.exited;
     },
     proven,
     [](text::Text& text, const DeathFacts&, std::string_view) noexcept {
       text.add(" was killed by the kernel on request (SysRq f), whatever memory was left");
     }},
    {{"reported_memory", "`oomrec ended` gave memory as the reason",
      VerdictCode::user_space_oom_kill},
     [](const DeathFacts& facts) noexcept { return facts.has_informant() && may_be_sent(facts); },
     proven,
     add_user_space_kill},
    {{"exit", "it exited", VerdictCode::exited},
     [](const DeathFacts& facts) noexcept { return facts.exited; },
     proven,
     add_end},
    {{"reported_other", "`oomrec ended` gave another reason", VerdictCode::killed_externally},
     [](const DeathFacts& facts) noexcept {
       return facts.has_other_reason() && !is_crash(facts.signal);
     },
     proven,
     [](text::Text& text, const DeathFacts& facts, std::string_view outcome) noexcept {
       add_end(text, facts, outcome);
       text.add(" from ").add(facts.informant()).add(", which gave another reason than memory");
     }},
    {{"known_parent", "its parent, which is known to end workers that grow",
      VerdictCode::terminated_by_parent},
     [](const DeathFacts& facts) noexcept {
       return facts.user_killer() == session::UserKiller::parent && may_be_sent(facts);
     },
     likely,
     [](text::Text& text, const DeathFacts& facts, std::string_view outcome) noexcept {
       add_end(text, facts, outcome);
       text.add(" from its parent, which ends workers that take too much memory");
     }},
    {{"daemon", "a service that ends processes when memory is short logged it",
      VerdictCode::user_space_oom_kill},
     [](const DeathFacts& facts) noexcept { return facts.has_user_killer() && may_be_sent(facts); },
     likely,
     add_user_space_kill},
    {{"parent", "its parent, near a limit or where it may have had one of its own",
      VerdictCode::terminated_by_parent},
     [](const DeathFacts& facts) noexcept {
       return (is_short_of_memory(facts) || facts.is_perhaps_for_memory()) &&
              facts.sent_by_parent() && !was_ended_for_another(facts) && facts.signal != 0 &&
              may_be_sent(facts);
     },
     possible,
     [](text::Text& text, const DeathFacts& facts, std::string_view outcome) noexcept {
       add_end(text, facts, outcome);
       text.add(" from its parent");
       if (is_short_of_memory(facts)) return tell_limit(text, facts, Certainty::possible);
       text.add(", possibly at a limit of the parent's own");
     }},
    {{"earlier_boot", "it ended before the machine was restarted", VerdictCode::unknown},
     [](const DeathFacts& facts) noexcept {
       return is_kill(facts.signal) && facts.has(session::kDeathEarlierBoot);
     },
     possible,
     add_end},
    {{"near_limit", "SIGKILL or an unseen end near a limit, or when memory was short",
      VerdictCode::killed_near_limit},
     [](const DeathFacts& facts) noexcept {
       return is_kill(facts.signal) && is_short_of_memory(facts) && !was_dismissed(facts);
     },
     as_near_limit,
     [](text::Text& text, const DeathFacts& facts, std::string_view outcome) noexcept {
       add_end(text, facts, outcome);
       tell_limit(text, facts, as_near_limit(facts));
     }},
    {{"sent", "SIGKILL, and the kernel did not send it for memory", VerdictCode::killed_externally},
     [](const DeathFacts& facts) noexcept {
       return is_kill(facts.signal) &&
              (was_dismissed(facts) || (facts.signal != 0 && facts.kernel_ruled_out()));
     },
     as_sent,
     tell_outside},
    {{"unseen", "SIGKILL or an unseen end, and nothing is known", VerdictCode::unknown},
     [](const DeathFacts& facts) noexcept { return is_kill(facts.signal); },
     possible,
     add_end},
    {{"term", "SIGTERM near a limit, or when memory was short",
      VerdictCode::terminated_under_pressure},
     [](const DeathFacts& facts) noexcept {
       return is_term(facts.signal) && !was_ended_for_another(facts) && is_short_of_memory(facts);
     },
     possible,
     [](text::Text& text, const DeathFacts& facts, std::string_view outcome) noexcept {
       add_end(text, facts, outcome);
       tell_limit(text, facts, Certainty::possible);
     }},
    {{"shared_memory", "SIGBUS while its shared memory was full", VerdictCode::shared_memory_full},
     [](const DeathFacts& facts) noexcept { return facts.shared_memory_full(); },
     likely,
     [](text::Text& text, const DeathFacts& facts, std::string_view) noexcept {
       text.add(" died of SIGBUS: ");
       add_shared_memory(text, facts);
     }},
    {{"crash", "a signal that a fault of its own raises", VerdictCode::crashed},
     [](const DeathFacts& facts) noexcept { return is_crash(facts.signal); },
     likely,
     [](text::Text& text, const DeathFacts& facts, std::string_view) noexcept {
       text.add(" crashed with ");
       add_signal(text, facts.signal);
     }},
    {{"other_signal", "another signal", VerdictCode::killed_externally},
     [](const DeathFacts&) noexcept { return true; },
     as_sent,
     tell_outside},
};

// Stores the limit that the summary names.
void set_limit(Verdict& verdict, const DeathFacts& facts) noexcept {
  const Level& level = facts.usage.cgroup;
  const bool killed = verdict.code == VerdictCode::cgroup_oom_kill;
  const bool near = level.near() && (verdict.code == VerdictCode::killed_near_limit ||
                                     verdict.code == VerdictCode::terminated_by_parent ||
                                     verdict.code == VerdictCode::terminated_under_pressure);
  if (!level.bounded() || !(killed || near)) return;
  // The kernel kills in a cgroup only at its limit, whatever an older reading says.
  const std::uint64_t used = killed && !level.near() ? level.limit : level.used;
  verdict.limit = {LimitKind::cgroup, level.limit, used};
}

// "; it held 640.0 MiB, 12.0 MiB of it resident", "; it held 4.0 KiB; 230.0 MiB were resident"
void add_held(text::Text& text, const Usage& usage) noexcept {
  text.add("; it held ").size(usage.held);
  const std::uint64_t part = std::max(usage.held, usage.resident) / 4;
  if (usage.resident == 0 || part < kWorthSaying) return;
  if (usage.held > usage.resident + part && !usage.is_in_memory)
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
  if (!was_seen(facts, outcome)) text.add(", exit status unknown,");
}

bool killed_by_kernel(const session::View& view, const End& end,
                      std::string_view outcome) noexcept {
  return end.death.realtime_ns != 0 && DeathFacts{view, end, outcome}.killer() != Killer::none;
}

void explain_death(Verdict& verdict, const session::View& view, const End& end,
                   std::string_view outcome) noexcept {
  const DeathFacts facts{view, end, outcome};
  const Rule& rule = first_rule(kRules, facts);
  verdict.code = rule.text.code;
  verdict.certainty = rule.certainty(facts);
  set_limit(verdict, facts);
  const std::string_view program = text::base_name(view.string(program_of(view.header())));
  text::Text summary{verdict.summary};
  summary.add(program.empty() ? "the process" : program);
  rule.tell(summary, facts, outcome);
  const bool is_killer_named = facts.killer() != Killer::none || facts.has_user_killer();
  if (!is_killer_named && !was_seen(facts, outcome)) summary.add("; its exit status is unknown");
  if (view.header().off_reason != 0) {
    summary.add("; it was not recorded");
  } else {
    is_mostly_unrecorded(facts) ? add_resident(summary, facts) : add_held(summary, facts.usage);
    if (!facts.exited) add_in_flight(summary, view);
    if (!was_refused(view)) summary.add("; no refused request is on record");
  }
  add_death_evidence(verdict, facts);
}

std::span<const RuleText> rules_of_deaths() noexcept {
  static constexpr auto kTexts = texts_of(kRules);
  return kTexts;
}

}  // namespace oomrec::verdict
