// Verdicts on deaths, row by row: which evidence is proof.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "common/session/notable.h"
#include "common/verdict/verdict.h"
#include "tests/unit/common/bundle/session_image.h"

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

const std::string kUntouched =
    "allocated but not in memory at its last check: 40.0 MiB, never touched or given back; the "
    "kernel counts it as used only once it is touched";

}  // namespace

TEST_CASE("a line with a pid of another namespace proves nothing, unless the process was alone") {
  Killed session;
  const Death by_pid = with_line(death_by(9), KernelLine::cgroup);
  const Death by_name = with_line(death_by(9, kDeathLineByName), KernelLine::cgroup);
  const Death alone = with_line(death_by(9, kDeathLineByName | kDeathAlone), KernelLine::cgroup);
  CHECK(session.verdict(by_pid).certainty == Certainty::proven);
  CHECK(session.verdict(by_name).certainty == Certainty::likely);
  CHECK(session.verdict(alone).certainty == Certainty::proven);
  const std::string summary{session.verdict(by_name).summary};
  CHECK(summary.find("was probably killed by the kernel") != std::string::npos);
  const auto evidence = evidence_of(session.verdict(by_name));
  CHECK(std::find(evidence.begin(), evidence.end(),
                  "that pid is of another namespace: cgroup, name and size are this process's") !=
        evidence.end());
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
  const verdict::Verdict verdict = session.verdict(death, "oom_killed");
  CHECK(
      std::string{verdict.summary} ==
      "python3.11 was killed by the kernel: its memory cgroup had reached its limit of 660.0 MiB; "
      "it held 640.0 MiB");
  CHECK(evidence_of(verdict) ==
        std::vector<std::string>{
            "kernel: Memory cgroup out of memory: Killed process 4711 (python3)",
            "the kernel's count of OOM kills in its cgroup rose from 0 to 1 within 1 s of "
            "its end; it was the only process there",
            "cgroup: working set 620.0 MiB 400.0 ms before its end, 93 % of 660.0 MiB",
            "machine: 8.0 GiB available of 16.0 GiB RAM 400.0 ms before its end", kUntouched});
  CHECK(verdict.limit.kind == LimitKind::cgroup);
  CHECK(verdict.limit.bytes == 660 * kMiB);
  CHECK(verdict.limit.used_bytes == 620 * kMiB);
}

TEST_CASE("another death says why memory is not the reason") {
  Killed session;
  session.header().health.pressure_some = 105;
  Death death = death_by(15, kCounted | kDeathLogRead, 0);
  death.sender_pid = 77;
  const verdict::Verdict verdict = session.verdict(death, "signal 15");
  CHECK(std::string{verdict.summary} ==
        "python3.11 was killed by SIGTERM, and not for lack of memory; it held 640.0 MiB");
  CHECK(evidence_of(verdict) ==
        std::vector<std::string>{
            "the kernel's log has no OOM kill of this process",
            "the kernel's count of OOM kills in its cgroup: 0, unchanged since the recorder's last "
            "check",
            "cgroup: working set 620.0 MiB 400.0 ms before its end, 15 % of 4.0 GiB",
            "machine: 8.0 GiB available of 16.0 GiB RAM 400.0 ms before its end", kUntouched,
            "memory pressure, of the last 10 s: some 1.05 %, full 0.00 %",
            "the signal came from process 77"});
  CHECK(verdict.limit.kind == LimitKind::none);
}

TEST_CASE("killed near its limit by an unknown sender") {
  Killed session{680 * kMiB};
  CHECK(std::string{session.verdict(death_by(9)).summary} ==
        "python3.11 was killed by SIGKILL at 91 % of its cgroup's limit, possibly for lack of "
        "memory: nothing excludes it; it held 640.0 MiB");
  session.header().health.cgroup_limit_bytes = 650 * kMiB;
  CHECK(std::string{session.verdict(death_by(9)).summary} ==
        "python3.11 was killed by SIGKILL at 95 % of its cgroup's limit, probably for lack of "
        "memory; it held 640.0 MiB");
  CHECK(std::string{session.verdict(death_by(0)).summary} ==
        "python3.11 ended at 95 % of its cgroup's limit, possibly for lack of memory: nothing "
        "excludes it; its exit status is unknown; it held 640.0 MiB");
  session.header().health.cgroup_limit_bytes = kUnlimited;
  session.header().health.available_bytes = 1024 * kMiB;
  CHECK(std::string{session.verdict(death_by(15)).summary} ==
        "python3.11 was killed by SIGTERM at 93 % of the machine's RAM, possibly for lack of "
        "memory: nothing excludes it; it held 640.0 MiB");
}

TEST_CASE("a promise is no usage, and a soft limit does not kill") {
  Killed session;
  SUBCASE("a reservation larger than the limit") {
    session.header().health.cgroup_limit_bytes = 256 * kMiB;
    session.header().health.cgroup_used_bytes = 20 * kMiB;
    session.header().health.rss_bytes = 10 * kMiB;
    const verdict::Verdict verdict = session.verdict(death_by(9));
    CHECK(verdict.code == VerdictCode::killed_externally);
    CHECK(std::string{verdict.summary} ==
          "python3.11 was killed by SIGKILL, and not for lack of memory; it held 640.0 MiB, 10.0 "
          "MiB of it resident at its last check");
    CHECK(std::string{verdict.evidence[1]}.ends_with("7 % of 256.0 MiB"));
    CHECK(std::string{verdict.evidence[3]}.starts_with(
        "allocated but not in memory at its last check: 630.0 MiB"));
    session.header().health.swap_bytes = 500 * kMiB;
    CHECK(std::string{session.verdict(death_by(9)).evidence[3]} ==
          "swapped out at its last check: 500.0 MiB");
  }
  SUBCASE("at 98 % of the soft limit") {
    session.header().soft_limit_bytes = 650 * kMiB;
    CHECK(session.verdict(death_by(9)).code == VerdictCode::killed_externally);
    CHECK(evidence_of(session.verdict(death_by(9))).back() ==
          kUntouched + "; the soft limit counts it already");
    CHECK(session.verdict(death_by(15)).code == VerdictCode::killed_externally);
  }
}

TEST_CASE("what has been freed since the last check is not used any more") {
  Killed session{640 * kMiB};
  CHECK(session.verdict(death_by(9)).code == VerdictCode::killed_near_limit);
  session.header().health.live_bytes = 1000 * kMiB;  // of which 360 have been freed
  const verdict::Verdict verdict = session.verdict(death_by(9, kDeathLogRead));
  CHECK(verdict.code == VerdictCode::killed_externally);
  CHECK(
      std::string{verdict.evidence[1]} ==
      "cgroup: working set 260.0 MiB 400.0 ms before its end, 40 % of 640.0 MiB, without 360.0 MiB "
      "that it has freed since");
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
    CHECK(verdict().code == VerdictCode::killed_near_limit);
    CHECK(verdict().certainty == Certainty::likely);
    CHECK(std::string{verdict().evidence[1]} ==
          "cgroup: working set 695.0 MiB 400.0 ms before its end, 99 % of 700.0 MiB");
    death.flags |= kDeathLogRead;
    CHECK(verdict().certainty == Certainty::possible);
    CHECK(std::string{verdict().evidence[0]} ==
          "the kernel's log has no OOM kill of this process: another process or a user-space OOM "
          "killer may have sent the signal");
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
    CHECK(verdict().code == VerdictCode::killed_near_limit);
    CHECK(std::string{verdict().evidence[2]} == "after that, the cgroup reached its limit 7 times");
  }
}

TEST_CASE("a signal to a process that waits for memory itself") {
  Killed session;
  session.header().health.pressure_some = 9000;
  session.header().health.pressure_full = 6000;
  CHECK(session.verdict(death_by(15)).code == VerdictCode::killed_externally);  // others wait
  session.header().stalls = {1'000'000'000, 200, 0, 300, 0, 0};
  CHECK(session.verdict(death_by(15)).code == VerdictCode::terminated_under_pressure);
  const verdict::Verdict killed = session.verdict(death_by(9, kDeathLogRead));
  CHECK(killed.code == VerdictCode::killed_near_limit);
  CHECK(killed.certainty == Certainty::possible);
  CHECK(std::string{killed.summary} ==
        "python3.11 was killed by SIGKILL while it waited for memory, possibly for lack of memory: "
        "nothing excludes it; it held 640.0 MiB");
  CHECK(evidence_of(killed).back() ==
        "it had 200 major faults in 1.0 s, while its cgroup needed 300 evicted pages again");
}

TEST_CASE("how certain a death by a signal is") {
  Killed session;
  Death death = death_by(15, kDeathLogRead);
  CHECK(session.verdict(death).certainty == Certainty::likely);
  death.sender_pid = 77;
  CHECK(session.verdict(death).certainty == Certainty::proven);
  session.header().health.cgroup_limit_bytes = 750 * kMiB;  // 82 %: not far
  CHECK(session.verdict(death).certainty == Certainty::likely);
  CHECK(std::string{session.verdict(death).summary} ==
        "python3.11 was killed by SIGTERM; it held 640.0 MiB");
  CHECK(session.verdict(with_line(death_by(9), KernelLine::cgroup)).certainty == Certainty::proven);
  const verdict::Verdict counted = session.verdict(death_by(9, kCounted | kDeathAlone, 1));
  CHECK(counted.certainty == Certainty::likely);
  CHECK(std::string{counted.summary}.find("was probably killed by the kernel") !=
        std::string::npos);
}

TEST_CASE("the kernel killed, but does not say that the machine was full") {
  Killed session;
  const auto summary = [&](KernelLine line) {
    return std::string{session.verdict(with_line(death_by(9), line)).summary};
  };
  const std::string killed = "python3.11 was killed by the kernel: ";
  CHECK(summary(KernelLine::system).starts_with(killed + "the machine had no memory left;"));
  CHECK(
      summary(KernelLine::cpuset).starts_with(killed + "the memory nodes of a cpuset were full;"));
  CHECK(summary(KernelLine::policy)
            .starts_with(killed + "the memory nodes of a memory policy were full;"));
  CHECK(summary(KernelLine::page_fault)
            .starts_with(killed + "a page fault found no memory, whatever the machine had left;"));
  CHECK(summary(KernelLine::unscoped).starts_with(killed + "its log does not say whether"));
  const verdict::Verdict requested =
      session.verdict(with_line(death_by(9, kCounted | kDeathAlone, 1), KernelLine::sysrq));
  CHECK(requested.code == VerdictCode::killed_externally);
  CHECK(std::string{requested.summary}.starts_with(
      "python3.11 was killed by the kernel on request (SysRq f), whatever memory was left;"));
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
  CHECK(verdict("signal 15").code == VerdictCode::user_space_oom_kill);
  CHECK(std::string{verdict("signal 15").summary} ==
        "python3.11 was killed by SIGTERM from earlyoom, which ends processes when memory is "
        "short; it held 640.0 MiB");
  end.death = death_by(0);  // nobody saw the signal
  CHECK(std::string{verdict("unknown").summary} ==
        "python3.11 was killed by earlyoom, which ends processes when memory is short; it held "
        "640.0 MiB");
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
  const verdict::Verdict memory = verdict(UserKiller::informant, 9);
  CHECK(memory.code == VerdictCode::user_space_oom_kill);
  CHECK(memory.certainty == Certainty::proven);
  CHECK(std::string{memory.summary} ==
        "python3.11 was killed by SIGKILL from Ray, which said that memory was the reason; it held "
        "640.0 MiB");
  const verdict::Verdict other = verdict(UserKiller::other_reason, 15);
  CHECK(other.code == VerdictCode::killed_externally);
  CHECK(other.certainty == Certainty::proven);
  CHECK(std::string{other.summary} ==
        "python3.11 was killed by SIGTERM from Ray, which gave another reason than memory; it held "
        "640.0 MiB");
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
    CHECK(verdict().code == VerdictCode::killed_externally);
    CHECK(evidence_of(verdict()).front() == line);
    CHECK(evidence_of(verdict()).back().find("signal came from") == std::string::npos);
  }
  SUBCASE("for a reason that is not known: memory is neither blamed nor denied") {
    end.levels.flags = kSenderReasonUnknown;
    CHECK(verdict().code == VerdictCode::killed_externally);
    CHECK(verdict().certainty == Certainty::likely);
    CHECK(std::string{verdict().summary}.starts_with(
        "python3.11 was killed by SIGTERM from its parent, for a reason that is not known; it "));
    end.death.sender_pid = 77;  // not by its parent after all
    CHECK(verdict().certainty == Certainty::proven);
  }
  SUBCASE("perhaps at a limit of its own") {
    end.levels.flags = kSenderPerhapsForMemory;
    CHECK(verdict().code == VerdictCode::terminated_by_parent);
    CHECK(verdict().certainty == Certainty::possible);
    CHECK(std::string{verdict().summary}.starts_with(
        "python3.11 was killed by SIGTERM from its parent, possibly at a limit of the parent's "
        "own; "));
    end.death.flags |= kDeathAfterSibling;
    CHECK(verdict().code == VerdictCode::killed_externally);
  }
  SUBCASE("for memory, as its code or its arguments show") {
    end.levels.user_killer = static_cast<u32>(UserKiller::parent);
    CHECK(verdict().code == VerdictCode::terminated_by_parent);
    CHECK(verdict().certainty == Certainty::likely);
    CHECK(std::string{verdict().summary} ==
          "python3.11 was killed by SIGTERM from its parent, which ends workers that take too much "
          "memory; it held 640.0 MiB");
    CHECK(evidence_of(verdict()).front() == line);
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
    CHECK(std::string{verdict().summary}.starts_with(
        "python3.11 was killed by SIGTERM from its parent at 90 % of its cgroup's limit, possibly "
        "for lack of memory: nothing excludes it"));
    end.levels.flags = kSenderStops;
    CHECK(verdict().code == VerdictCode::killed_externally);
    CHECK(std::string{verdict().summary}.starts_with(
        "python3.11 was killed by SIGTERM from its parent, which was about to stop; "));
    end.levels.flags = 0;
    const session::Death by_parent = end.death;
    for (const u32 flag : {kDeathEndedByLauncher, kDeathAfterSibling}) {
      end.death = by_parent;
      end.death.flags |= flag;
      CHECK(verdict().code == VerdictCode::killed_externally);
    }
    CHECK(std::string{verdict().summary}.starts_with(
        "python3.11 was killed by SIGTERM from its parent, which had lost another child shortly "
        "before; "));
    CHECK(evidence_of(verdict()).front() ==
          "its parent had lost another child to a signal shortly before it ended this one");
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
  CHECK(kill.code == VerdictCode::cgroup_oom_kill);
  CHECK(std::string{kill.evidence[kill.evidence_count - 1]}.starts_with(
      "before that, numpy asked malloc for 412.0 MiB and was refused: the soft limit"));
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
  CHECK(std::string{session.verdict(death).summary} ==
        "python3.11 died of SIGBUS: /dev/shm has 64.0 MiB, of which 3.0 MiB were free when it "
        "needed 20.0 MiB for torch_77_1 (deleted); it held 640.0 MiB");
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
  const auto evidence =
      evidence_of(verdict::verdict_of(session.view(), Trigger::killed, 0, {}, "oom_killed", &end));
  const auto line = std::ranges::find_if(evidence, [](const std::string& one) {
    return one.find("private memory that was not recorded") != one.npos;
  });
  REQUIRE(line != evidence.end());
  CHECK(line->ends_with("from before a fork)"));
}
