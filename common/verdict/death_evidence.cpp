// The lines of evidence about a process' end: log, counters, levels, pressure, sender, shared
// memory.
#include <cstring>

#include "common/text/text.h"
#include "common/verdict/death_facts.h"
#include "common/verdict/parts.h"

namespace oomrec::verdict {
namespace {

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
      line.add(": ").number(after).add(", unchanged since the recorder's last check");
      if (died_in_another_cgroup(death)) line.add("; it had been moved to another");
      return;
    }
    line.add(" rose from ").number(before).add(" to ").number(after);
    if (facts.has(session::kDeathAtOnce)) line.add(" within 1 s of its end");
    if (facts.has(session::kDeathAlone)) line.add("; it was the only process there");
    if (facts.has(session::kDeathOthers)) line.add("; other processes died at the same time");
    if (killer == Killer::none) line.add(", but the killed process may be another");
  });
}

// " 0.4 s before its end"
void add_age(text::Text& line, const Usage& usage) noexcept {
  if (usage.age_ns == 0) {
    line.add(" at its last check");
  } else {
    line.add(" ");
    add_time(line, usage.age_ns);
    line.add(" before its end");
  }
}

void add_cgroup_level(Verdict& verdict, const Usage& usage) noexcept {
  if (usage.cgroup.limit == session::kUnlimited)
    add_line(verdict, [](text::Text& line) { line.add("no limit on the memory of its cgroup"); });
  if (!usage.cgroup.bounded() || usage.cgroup.used == 0) return;
  add_line(verdict, [&](text::Text& line) {
    line.add("cgroup: working set ").size(usage.cgroup.used);
    add_age(line, usage);
    line.add(", ").number(usage.cgroup.percent()).add(" % of ").size(usage.cgroup.limit);
    if (usage.freed >= kWorthALine)
      line.add(", without ").size(usage.freed).add(" that it has freed since");
    if (verdict.code == VerdictCode::cgroup_oom_kill && !usage.cgroup.near())
      line.add("; the rest came after that, or as page cache");
  });
  if (usage.hits == 0) return;
  add_line(verdict, [&](text::Text& line) {
    line.add("after that, the cgroup reached its limit ").number(usage.hits).add(" times");
  });
}

void add_levels(Verdict& verdict, const Usage& usage) noexcept {
  add_cgroup_level(verdict, usage);
  if (usage.soft.bounded()) {
    add_line(verdict, [&](text::Text& line) {
      line.add("live ").size(usage.soft.used).add(", ").number(usage.soft.percent());
      line.add(" % of the soft limit ").size(usage.soft.limit);
    });
  }
  if (usage.machine.bounded()) {
    add_line(verdict, [&](text::Text& line) {
      line.add("machine: ").size(usage.machine.limit - usage.machine.used).add(" available of ");
      line.size(usage.machine.limit).add(" RAM");
      add_age(line, usage);
    });
  }
  // Which of it is swapped out and which was never touched is known only of the same moment.
  if (usage.swapped == 0)
    return add_untouched(verdict, usage.unresident, usage.soft.bounded(), Checked::earlier);
  add_line(verdict, [&](text::Text& line) {
    line.add("swapped out at its last check: ").size(usage.swapped);
  });
}

void add_hundredths(text::Text& line, std::uint32_t value) noexcept {
  line.number(value / 100).add('.').number(value % 100, 2).add(" %");
}

void add_pressure(Verdict& verdict, const DeathFacts& facts) noexcept {
  if (facts.pressure.some != 0 || facts.pressure.full != 0) {
    add_line(verdict, [&](text::Text& line) {
      line.add("memory pressure, of the last 10 s: some ");
      add_hundredths(line, facts.pressure.some);
      line.add(", full ");
      add_hundredths(line, facts.pressure.full);
      if (facts.stalls.window_ns != 0 && !facts.stalled()) line.add("; this process did not wait");
    });
  }
  if (!facts.stalled()) return;
  if (facts.stalls.cgroup_full != 0) {
    add_line(verdict, [&](text::Text& line) {
      line.add("all tasks of its cgroup waited for memory for ");
      add_hundredths(line, facts.stalls.cgroup_full);
      line.add(" of the last 10 s");
    });
  }
  if (facts.stalls.major_faults == 0) return;
  add_line(verdict, [&](text::Text& line) {
    line.add("it had ").number(facts.stalls.major_faults).add(" major faults in ");
    add_time(line, facts.stalls.window_ns);
    line.add(", while its cgroup needed ").number(facts.stalls.cgroup_refaults);
    line.add(" evicted pages again");
  });
}

void add_log(Verdict& verdict, const DeathFacts& facts) noexcept {
  const session::Death& death = facts.death;
  if (death.realtime_ns == 0) return;
  if (const std::string_view sender = facts.sender_line(); !sender.empty())
    add_line(verdict, [&](text::Text& line) { line.add(sender); });
  if (facts.has_kernel_line() || facts.has(session::kDeathFaultLogged)) {
    add_line(verdict, [&](text::Text& line) {
      const std::string_view text{death.kernel_line, sizeof death.kernel_line};
      line.add("kernel: ").add(text.substr(0, text.find('\0')));
    });
    if (facts.is_helper_named_by_kernel())
      add_line(verdict, [](text::Text& line) {
        line.add("that pid was the recorder's helper, which had this process's memory");
      });
    if (facts.has_kernel_line() && facts.has(session::kDeathLineByName))
      add_line(verdict, [](text::Text& line) {
        line.add("that pid is of another namespace: cgroup, name and size are this process's");
      });
  } else if (facts.has(session::kDeathEarlierBoot)) {
    add_line(verdict, [](text::Text& line) { line.add("the machine has rebooted since then"); });
  } else if (facts.has(session::kDeathLogRead)) {
    add_line(verdict, [&](text::Text& line) {
      line.add("the kernel's log has no OOM kill of this process");
      if (verdict.code == VerdictCode::killed_near_limit)
        line.add(": another process or a user-space OOM killer may have sent the signal");
    });
  } else {
    add_line(verdict, [](text::Text& line) {
      line.add("the kernel's log could not be read, or not far enough back");
    });
  }
}

}  // namespace

void add_death_evidence(Verdict& verdict, const DeathFacts& facts) noexcept {
  if (verdict.code == VerdictCode::shared_memory_full)
    return add_shared_memory_evidence(verdict, facts);
  if (facts.has(session::kDeathEndedByLauncher)) {
    add_line(verdict, [](text::Text& line) {
      line.add("another rank of its job had run out of memory before: the launcher ended this one");
    });
  }
  if (facts.has(session::kDeathAfterSibling)) {
    add_line(verdict, [](text::Text& line) {
      line.add("its parent had lost another child to a signal shortly before it ended this one");
    });
  }
  add_log(verdict, facts);
  add_counter(verdict, facts, facts.killer());
  if (is_death_caused_by_memory(verdict.code)) add_account(verdict, facts);
  add_levels(verdict, facts.usage);
  add_pressure(verdict, facts);
  if ((facts.levels.flags & session::kLauncherGone) != 0) {
    add_line(verdict, [&](text::Text& line) {
      line.add("oomrec run (pid ").signed_number(facts.header.parent_pid);
      line.add("), which had started it, was not there to see its end");
    });
  }
  if (facts.death.sender_pid != 0 && facts.sender_line().empty()) {
    add_line(verdict, [&](text::Text& line) {
      line.add("the signal came from process ").signed_number(facts.death.sender_pid);
    });
  }
}

// A SIGBUS because shared memory was full: the process had mapped a file in memory (tmpfs), and its
// file system had too little space when the mapping was made, or has none when the process dies.
namespace {

std::string_view path_of(const session::SharedMemory& shared) noexcept {
  return {shared.path, strnlen(shared.path, sizeof shared.path)};
}

std::string_view directory_of(std::string_view path) noexcept {
  const std::string_view directory = path.substr(0, path.rfind('/'));
  return path.empty() || directory.empty() ? "a file system in memory" : directory;
}

}  // namespace

void add_shared_memory(text::Text& text, const DeathFacts& facts) noexcept {
  const session::SharedMemory& shared = facts.header.shared;
  const std::string_view path = path_of(shared);
  text.add(directory_of(path)).add(" has ").size(shared.total_bytes);
  if (!shared.too_small()) {
    text.add(" and is full");
    return;
  }
  text.add(", of which ").size(shared.free_bytes).add(" were free when it needed ");
  text.size(shared.needed_bytes).add(" for ");
  text.add(path.empty() ? "a shared mapping" : text::base_name(path));
}

void add_shared_memory_evidence(Verdict& verdict, const DeathFacts& facts) noexcept {
  const session::SharedMemory& shared = facts.header.shared;
  add_line(verdict, [&](text::Text& line) {
    line.add("shared mapping of ").add(path_of(shared)).add(": ").size(shared.needed_bytes);
    line.add(" were still needed, ").size(shared.free_bytes).add(" of ");
    line.size(shared.total_bytes).add(" were free");
  });
  if (!facts.has(session::kDeathSharedFull)) return;
  add_line(verdict, [&](text::Text& line) {
    line.add(directory_of(path_of(shared))).add(" was still full after its end");
  });
}

bool died_for_shared_memory(const session::View& view, const End& end,
                            std::string_view outcome) noexcept {
  return DeathFacts{view, end, outcome}.shared_memory_full();
}

}  // namespace oomrec::verdict
