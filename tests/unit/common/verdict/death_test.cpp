// Verdicts on deaths, row by row: which evidence is proof.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "common/session/notable.h"
#include "common/verdict/verdict.h"
#include "tests/unit/common/bundle/session_image.h"
#include "tests/unit/common/verdict/page.h"

using namespace oomrec;
using namespace oomrec::verdict;
using namespace oomrec::session;

namespace {

constexpr u64 kMiB = 1 << 20;
constexpr u32 kCounted = kDeathCgroupCounted;

// A session with 640 MiB live, in a cgroup of `limit`.
struct Killed : TrainingSession {
  explicit Killed(u64 limit = 4096 * kMiB) {
    Health& health = header().health;
    health.time_ns = 104'600'000'000;  // 0.4 s before death_by()
    health.rss_bytes = 600 * kMiB;
    health.cgroup_used_bytes = 620 * kMiB;
    health.cgroup_limit_bytes = limit;
    health.available_bytes = u64{8} << 30;
  }
  verdict::Verdict verdict(const Death& death, std::string_view outcome = "unknown") const {
    const EndEvidence end{death, {}, {}};
    return verdict::verdict_of(view(), Trigger::killed, 0, {}, outcome, &end);
  }
};

Death death_by(int signal, u32 flags = 0, u64 kills = 0) {
  Death death{};
  death.realtime_ns = 1795256200'000'000'000U;
  death.flags = flags | (signal != 0 ? kDeathWaited : 0);
  death.wait_status = signal;
  death.cgroup_oom_kills_after = kills;
  death.system_oom_kills_after = kills;
  return death;
}

Death with_line(Death death, KernelLine kind) {
  death.kernel_line_kind = static_cast<u32>(kind);
  std::strcpy(death.kernel_line, "Memory cgroup out of memory: Killed process 4711 (python3)");
  return death;
}

std::vector<std::string> evidence_of(const verdict::Verdict& verdict) {
  return {verdict.evidence, verdict.evidence + verdict.evidence_count};
}

}  // namespace

TEST_CASE("a line with a pid of another namespace proves nothing, unless the process was alone") {
  Killed session;
  const Death by_pid = with_line(death_by(9), KernelLine::cgroup);
  const Death by_name = with_line(death_by(9, kDeathLineByName), KernelLine::cgroup);
  const Death alone = with_line(death_by(9, kDeathLineByName | kDeathAlone), KernelLine::cgroup);
  CHECK(session.verdict(by_pid).certainty == Certainty::proven);
  CHECK(session.verdict(by_name).certainty == Certainty::likely);
  CHECK(session.verdict(alone).certainty == Certainty::proven);
  show("a line with a pid of another namespace, and the same cgroup, name and size",
       session.verdict(by_name));
}

TEST_CASE("each combination of evidence has its verdict") {
  const struct {
    const char* code;
    Death death;
    u64 limit;
  } rows[] = {
      // The kernel's log line is proof, whether or not the end was observed; not if the process
      // ended otherwise.
      {"cgroup_oom_kill", with_line(death_by(9), KernelLine::cgroup), 4096},
      {"cgroup_oom_kill", with_line(death_by(0), KernelLine::cgroup), 4096},
      {"system_oom_kill", with_line(death_by(9), KernelLine::system), 4096},
      {"crashed", with_line(death_by(11), KernelLine::cgroup), 4096},
      {"killed_externally", with_line(death_by(15), KernelLine::system), 4096},
      {"exited", with_line(death_by(0, kDeathWaited), KernelLine::cgroup), 4096},
      // A counter alone is not proof.
      {"cgroup_oom_kill", death_by(9, kCounted | kDeathAtOnce, 1), 4096},
      {"cgroup_oom_kill", death_by(9, kCounted | kDeathAlone, 1), 4096},
      {"unknown", death_by(9, kCounted, 1), 4096},
      {"killed_near_limit", death_by(9, kCounted, 1), 680},
      {"unknown", death_by(9, kCounted | kDeathAtOnce | kDeathOthers, 1), 4096},
      {"unknown", death_by(9, kCounted | kDeathAlone | kDeathOthers, 1), 4096},
      {"killed_near_limit", death_by(0, kCounted | kDeathAlone, 1), 680},
      {"killed_externally", death_by(9, kCounted | kDeathAtOnce, 0), 4096},
      {"killed_externally", death_by(9, kDeathAtOnce, 1), 4096},  // no counter
      {"crashed", death_by(6, kCounted | kDeathAlone, 1), 4096},
      // The machine's counter is proof only if its memory was short.
      {"killed_externally", death_by(9, kDeathSystemCounted | kDeathAtOnce, 1), 4096},
      // Near a limit: a working set of 620 MiB. The 40 MiB that are not resident do not count.
      {"killed_near_limit", death_by(9), 688},
      {"unknown", death_by(9), 689},  // not near, but not far either
      {"killed_externally", death_by(9, kDeathLogRead), 689},
      {"killed_externally", death_by(9), 800},
      {"killed_near_limit", death_by(0), 688},
      {"unknown", death_by(0), 689},
      {"killed_near_limit", death_by(9, kDeathLogRead), 688},
      {"terminated_under_pressure", death_by(15), 688},
      {"killed_externally", death_by(15), 700},
      {"killed_externally", death_by(2), 688},
      {"killed_externally", death_by(64), 4096},
      {"crashed", death_by(11), 688},
      {"crashed", death_by(0x80 | 6), 4096},  // with a core file
      {"unknown", death_by(0, kDeathEarlierBoot), 680},
  };
  int number = 0;
  for (const auto& row : rows) {
    CAPTURE(number);
    Killed session{row.limit * kMiB};
    CHECK(name_of(session.verdict(row.death).code) == row.code);
    ++number;
  }
  CHECK(number == 31);
}

TEST_CASE("an unknown limit is not mentioned") {
  Killed session;
  session.header().health.time_ns = 0;
  CHECK(session.verdict(death_by(9)).code == VerdictCode::unknown);
  CHECK(session.verdict(death_by(9, kDeathLogRead)).code == VerdictCode::killed_externally);
  CHECK(session.verdict(death_by(9, kCounted)).code == VerdictCode::killed_externally);
}

TEST_CASE("a kill by the kernel has its limit and its evidence") {
  Killed session{660 * kMiB};
  Death death =
      with_line(death_by(9, kCounted | kDeathAtOnce | kDeathAlone, 1), KernelLine::cgroup);
  show("the kernel's line names it, in a cgroup at 93 % that counted the kill",
       session.verdict(death, "oom_killed"));
}

TEST_CASE("another death says why memory is not the reason") {
  Killed session;
  session.header().health.pressure_some = 105;
  Death death = death_by(15, kCounted | kDeathLogRead, 0);
  death.sender_pid = 77;
  show("SIGTERM from another process, far from any limit", session.verdict(death, "signal 15"));
}

TEST_CASE("killed near its limit by an unknown sender") {
  Killed session{680 * kMiB};
  show("SIGKILL at 91 % of its cgroup's limit", session.verdict(death_by(9)));
  session.header().health.cgroup_limit_bytes = 650 * kMiB;
  show("SIGKILL at 95 %", session.verdict(death_by(9)));
  show("an unseen end at 95 %", session.verdict(death_by(0)));
  session.header().health.cgroup_limit_bytes = kUnlimited;
  session.header().health.available_bytes = 1024 * kMiB;
  show("SIGTERM at 93 % of the machine's RAM", session.verdict(death_by(15)));
}

TEST_CASE("a promise is no usage, and a soft limit does not kill") {
  Killed session;
  SUBCASE("a reservation larger than the limit") {
    session.header().health.cgroup_limit_bytes = 256 * kMiB;
    session.header().health.cgroup_used_bytes = 20 * kMiB;
    session.header().health.rss_bytes = 10 * kMiB;
    show("SIGKILL, with 630 MiB never touched in a cgroup of 256 MiB",
         session.verdict(death_by(9)));
    session.header().health.swap_bytes = 500 * kMiB;
    show("the same, swapped out", session.verdict(death_by(9)));
  }
  SUBCASE("at 98 % of the soft limit") {
    session.header().soft_limit_bytes = 650 * kMiB;
    show("SIGKILL at 98 % of the soft limit", session.verdict(death_by(9)));
    CHECK(session.verdict(death_by(15)).code == VerdictCode::killed_externally);
  }
}

TEST_CASE("what has been freed since the last check is not used any more") {
  Killed session{640 * kMiB};
  CHECK(session.verdict(death_by(9)).code == VerdictCode::killed_near_limit);
  session.header().health.live_bytes = 1000 * kMiB;  // of which 360 have been freed
  show("SIGKILL, after it had freed 360 MiB", session.verdict(death_by(9, kDeathLogRead)));
  // What it has allocated since may be resident: memory is not excluded.
  session.header().health.cgroup_limit_bytes = 900 * kMiB;
  session.header().health.live_bytes = 400 * kMiB;
  CHECK(session.verdict(death_by(9)).code == VerdictCode::unknown);
}

TEST_CASE("the newest reading counts") {
  Killed session{700 * kMiB};
  session.header().health.cgroup_used_bytes = 100 * kMiB;
  Death death = death_by(9);
  death.realtime_ns = session.header().start_realtime_ns + 60'000'000'000;
  session.header().health.time_ns = session.header().start_monotonic_ns + 50'000'000'000;
  EndLevels levels{};
  levels.realtime_ns = death.realtime_ns - 400'000'000;
  levels.resident_bytes = 690 * kMiB;
  levels.cgroup_used_bytes = 695 * kMiB;
  levels.cgroup_limit_bytes = 700 * kMiB;
  const auto verdict = [&] {
    const EndEvidence end{death, levels, {}};
    return verdict::verdict_of(session.view(), Trigger::killed, 0, {}, "signal 9", &end);
  };
  SUBCASE("from outside") {
    show("SIGKILL at 99 % by a reading from outside", verdict());
    death.flags |= kDeathLogRead;
    show("the same, without a line in the kernel's log", verdict());
  }
  SUBCASE("its own, after it had shrunk") {
    session.header().health.time_ns = session.header().start_monotonic_ns + 59'900'000'000;
    CHECK(verdict().code == VerdictCode::killed_externally);
  }
  SUBCASE("it grew to the limit after the reading") {
    levels.cgroup_used_bytes = 300 * kMiB;
    levels.limit_hits_before = 5;
    levels.limit_hits_after = 12;
    CHECK(verdict().code == VerdictCode::killed_externally);  // page cache reaches the limit, too
    levels.resident_peak_bytes = 690 * kMiB;
    show("SIGKILL, after its cgroup had reached the limit since the reading", verdict());
  }
}

TEST_CASE("a signal to a process that waits for memory itself") {
  Killed session;
  session.header().health.pressure_some = 9000;
  session.header().health.pressure_full = 6000;
  CHECK(session.verdict(death_by(15)).code == VerdictCode::killed_externally);  // others wait
  session.header().stalls = {1'000'000'000, 200, 0, 300, 0, 0};
  CHECK(session.verdict(death_by(15)).code == VerdictCode::terminated_under_pressure);
  show("SIGKILL while it waited for memory", session.verdict(death_by(9, kDeathLogRead)));
}

TEST_CASE("how certain a death by a signal is") {
  Killed session;
  Death death = death_by(15, kDeathLogRead);
  CHECK(session.verdict(death).certainty == Certainty::likely);
  death.sender_pid = 77;
  CHECK(session.verdict(death).certainty == Certainty::proven);
  session.header().health.cgroup_limit_bytes = 750 * kMiB;  // 82 %: not far
  show("SIGTERM at 82 %: neither near nor far", session.verdict(death));
  CHECK(session.verdict(with_line(death_by(9), KernelLine::cgroup)).certainty == Certainty::proven);
  show("the only process of a cgroup that counted a kill",
       session.verdict(death_by(9, kCounted | kDeathAlone, 1)));
}

TEST_CASE("the kernel killed, but does not say that the machine was full") {
  Killed session;
  const auto show_line = [&](const char* facts, KernelLine line) {
    show(facts, session.verdict(with_line(death_by(9), line)));
  };
  show_line("the kernel's line is about the machine", KernelLine::system);
  show_line("its line is about a cpuset", KernelLine::cpuset);
  show_line("its line is about a memory policy", KernelLine::policy);
  show_line("its line is about a page fault", KernelLine::page_fault);
  show_line("its line does not say about what", KernelLine::unscoped);
  show("SysRq f",
       session.verdict(with_line(death_by(9, kCounted | kDeathAlone, 1), KernelLine::sysrq)));
  // Another line of the kernel's says nothing of who sent SIGTERM.
  CHECK(session.verdict(with_line(death_by(15), KernelLine::system)).certainty ==
        Certainty::likely);
  // The reaper's line says that it was the kernel, its cgroup's counter for what.
  CHECK(session.verdict(with_line(death_by(9, kCounted, 1), KernelLine::unscoped)).code ==
        VerdictCode::cgroup_oom_kill);
}

TEST_CASE("a user-space OOM killer") {
  Killed session;
  EndEvidence end{death_by(15), {}, {}};
  end.levels.user_killer = static_cast<u32>(UserKiller::earlyoom);
  const auto verdict = [&](std::string_view outcome) {
    return verdict::verdict_of(session.view(), Trigger::killed, 0, {}, outcome, &end);
  };
  show("earlyoom logged SIGTERM", verdict("signal 15"));
  end.death = death_by(0);
  show("earlyoom logged it, and nobody saw the signal", verdict("unknown"));
}

TEST_CASE("who ended it said why") {
  Killed session;
  EndEvidence end{death_by(9), {}, {}};
  const auto verdict = [&](UserKiller told, int signal) {
    end.death = death_by(signal);
    end.levels.user_killer = static_cast<u32>(told);
    return verdict::verdict_of(session.view(), Trigger::killed, 0, {}, "unknown", &end);
  };
  std::strcpy(end.levels.user_killer_line, "Ray: used 3.1 GiB of 3.0 GiB");
  show("SIGKILL, and `oomrec ended` gave memory as the reason", verdict(UserKiller::informant, 9));
  show("SIGTERM, and it gave another reason", verdict(UserKiller::other_reason, 15));
  // A crash is no end by another.
  CHECK(verdict(UserKiller::informant, 11).code == VerdictCode::crashed);
  // The kernel's own line comes first.
  end.death = with_line(death_by(9), KernelLine::cgroup);
  CHECK(verdict::verdict_of(session.view(), Trigger::killed, 0, {}, "unknown", &end).code ==
        VerdictCode::cgroup_oom_kill);
}

TEST_CASE("the kernel names the recorder's helper") {
  Killed session;
  const Death death = with_line(death_by(9), KernelLine::cgroup);  // of process 4711
  const auto has_line = [&] {
    const std::vector<std::string> lines = evidence_of(session.verdict(death));
    return std::find(lines.begin(), lines.end(),
                     "that pid was the recorder's helper, which had this process's memory") !=
           lines.end();
  };
  session.header().helper_pid = 4711;
  session.header().pid = 4700;
  CHECK(has_line());
  session.header().helper_pid = 4712;
  CHECK_FALSE(has_line());
  session.header().helper_pid = 0;
  CHECK_FALSE(has_line());
}

TEST_CASE("an end that oomrec run did not see, as it had ended before") {
  constexpr std::string_view kWords = "oomrec run (pid 4710), which had started it, was not there";
  Killed session;
  EndEvidence end{death_by(0, kDeathLogRead), {}, {}};
  const auto has_line = [&] {
    const std::vector<std::string> lines =
        evidence_of(verdict::verdict_of(session.view(), Trigger::killed, 0, {}, "unknown", &end));
    return std::any_of(lines.begin(), lines.end(),
                       [&](const std::string& line) { return line.starts_with(kWords); });
  };
  session.header().parent_pid = 4710;
  CHECK_FALSE(has_line());
  end.levels.flags = kLauncherGone;
  CHECK(has_line());
}

TEST_CASE("a parent that ends its child") {
  const std::string line = "its parent 4710 sent SIGTERM from watch.py:12 check";
  Killed session;
  EndEvidence end{death_by(15, kDeathLogRead), {}, {}};
  end.death.sender_pid = 4710;
  std::strcpy(end.levels.user_killer_line, line.c_str());
  const auto verdict = [&] {
    return verdict::verdict_of(session.view(), Trigger::killed, 0, {}, "signal 15", &end);
  };
  SUBCASE("far from any limit and for an unknown reason: memory is not blamed") {
    show("SIGTERM from its parent, far from any limit", verdict());
    CHECK(evidence_of(verdict()).back().find("signal came from") == std::string::npos);
  }
  SUBCASE("for a reason that is not known: memory is neither blamed nor denied") {
    end.levels.flags = kSenderReasonUnknown;
    show("SIGTERM from its parent, for an unknown reason", verdict());
    end.death.sender_pid = 77;  // not by its parent after all
    CHECK(verdict().certainty == Certainty::proven);
  }
  SUBCASE("perhaps at a limit of its own") {
    end.levels.flags = kSenderPerhapsForMemory;
    show("SIGTERM from its parent, which may have a limit", verdict());
    end.death.flags |= kDeathAfterSibling;
    CHECK(verdict().code == VerdictCode::killed_externally);
  }
  SUBCASE("for memory, as its code or its arguments show") {
    end.levels.user_killer = static_cast<u32>(UserKiller::parent);
    show("SIGTERM from its parent, which is known to end workers that grow", verdict());
    end.death = with_line(death_by(9), KernelLine::cgroup);  // the kernel was faster
    CHECK(verdict().code == VerdictCode::cgroup_oom_kill);
  }
  SUBCASE("near the cgroup's limit: it may be for memory") {
    session.header().health.cgroup_limit_bytes = 688 * kMiB;
    for (const int signal : {9, 15}) {
      end.death.wait_status = signal;
      CHECK(verdict().code == VerdictCode::terminated_by_parent);
      CHECK(verdict().certainty == Certainty::possible);
      CHECK(verdict().limit.kind == LimitKind::cgroup);
    }
    show("SIGTERM from its parent at 90 % of the cgroup's limit", verdict());
    end.levels.flags = kSenderStops;
    show("the same from a parent that stops", verdict());
    end.levels.flags = 0;
    const session::Death by_parent = end.death;
    for (const u32 flag : {kDeathEndedByLauncher, kDeathAfterSibling}) {
      end.death = by_parent;
      end.death.flags |= flag;
      CHECK(verdict().code == VerdictCode::killed_externally);
    }
    show("the same from a parent that had lost another child", verdict());
  }
  SUBCASE("near the limit, but another process sent it") {
    session.header().health.cgroup_limit_bytes = 688 * kMiB;
    end.death.sender_pid = 4242;
    CHECK(verdict().code == VerdictCode::terminated_under_pressure);
  }
}

TEST_CASE(
    "a failure before a kill by the kernel is evidence; before another death it is the verdict") {
  Killed session{660 * kMiB};
  const auto verdict = [&](const Death& death) {
    const EndEvidence end{death, {}, {}};
    return verdict::verdict_of(session.view(), Trigger::soft_limit, session.failure, {}, "signal 9",
                               &end);
  };
  const verdict::Verdict kill = verdict(with_line(death_by(9), KernelLine::cgroup));
  show("the kernel's line, after a refusal at the soft limit", kill);
  CHECK(verdict(death_by(9)).code == VerdictCode::soft_limit);
  CHECK(verdict(death_by(11)).code == VerdictCode::soft_limit);
  CHECK(verdict::verdict_of(session.view(), Trigger::request, 0, {}, "oom_killed").code ==
        VerdictCode::requested);
}

TEST_CASE("a death in the recording is used unless the caller has another") {
  Killed session;
  session.header().death = with_line(death_by(9), KernelLine::cgroup);
  CHECK(verdict::verdict_of(session.view(), Trigger::killed, 0, {}, "oom_killed").code ==
        VerdictCode::cgroup_oom_kill);
}

TEST_CASE("a SIGBUS from the kernel is due to shared memory if there was too little") {
  Killed session;
  SharedMemory& shared = session.header().shared;
  shared.time_ns = 1;
  shared.needed_bytes = 20 * kMiB;
  shared.free_bytes = 3 * kMiB;
  shared.total_bytes = 64 * kMiB;
  shared.address = 0x7f0000000000;
  std::strcpy(shared.path, "/dev/shm/torch_77_1 (deleted)");
  Death death = death_by(7);
  const auto code = [&](std::string_view outcome = "signal 7") {
    return name_of(session.verdict(death, outcome).code);
  };
  show("SIGBUS with too little shared memory", session.verdict(death));
  SUBCASE("another signal") {
    death.wait_status = 11;
    CHECK(code() == "crashed");
  }
  SUBCASE("enough space") {
    shared.free_bytes = 20 * kMiB;
    CHECK(code() == "crashed");
    death.flags |= kDeathSharedFull;  // full only afterwards
    CHECK(code() == "shared_memory_full");
    shared.time_ns = 0;  // no mapping at all
    CHECK(code() == "crashed");
  }
  SUBCASE("unmapped before") {
    shared.address = 0;
    CHECK(code() == "crashed");
  }
  SUBCASE("sent by a process") {
    death.sender_pid = 77;
    CHECK(code() == "crashed");
  }
  SUBCASE("recorded by the process itself") {
    Crash& crash = session.header().crash;
    crash.code = 2;  // BUS_ADRERR
    crash.signal = 7;
    CHECK(code() == "shared_memory_full");
    death = death_by(0);
    CHECK(code() == "shared_memory_full");
    crash.code = 0;  // SI_USER
    CHECK(code() == "crashed");
  }
  SUBCASE("not observed") {
    death = death_by(0);
    CHECK(code() == "crashed");
    CHECK(code("unknown") == "unknown");
  }
  SUBCASE("after a failed request") {
    const EndEvidence end{death, {}, {}};
    const verdict::Verdict verdict = verdict::verdict_of(session.view(), Trigger::soft_limit,
                                                         session.failure, {}, "signal 7", &end);
    CHECK(verdict.code == VerdictCode::shared_memory_full);
    CHECK(verdict.limit.kind == LimitKind::none);
  }
}

TEST_CASE("the longest sentence about unrecorded memory is whole") {
  constexpr u64 kLong = 1023 * kMiB + 920 * 1024;  // 1023.9 MiB
  const TrainingSession session;
  EndEvidence end{with_line(death_by(9, kCounted, 1), KernelLine::cgroup), {}, {}};
  end.account.source = static_cast<u32>(AccountSource::kill_line);
  end.account.own_shared_bytes = end.account.own_file_bytes = kLong;
  end.account.own_anonymous_bytes = kLong * 1000;
  show("the kernel's line has more than was recorded: the longest sentence about that",
       verdict::verdict_of(session.view(), Trigger::killed, 0, {}, "oom_killed", &end));
}

TEST_CASE("without evidence of a death, the verdict has the outcome and the live memory") {
  TrainingSession session;  // its failure has its own bundle
  const auto show_of = [&](const char* facts, std::string_view outcome) {
    show(facts, verdict::verdict_of(session.view(), Trigger::killed, 0, {}, outcome));
  };
  for (const char* outcome : {"signal 9", "exited 3", "recovered", "unknown"})
    show_of(("only the outcome: " + std::string{outcome}).c_str(), outcome);
  session.header().tables[static_cast<std::size_t>(TableId::failures)].committed = 1;
  show_of("only the outcome, and nothing was refused", "signal 9");
}
