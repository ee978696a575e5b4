// Verdicts on deaths, row by row: which evidence is proof.
#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

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
    health.time_ns = 1;
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
      {"killed_near_limit", death_by(9, kCounted, 1), 700},
      {"unknown", death_by(9, kCounted | kDeathAtOnce | kDeathOthers, 1), 4096},
      {"unknown", death_by(9, kCounted | kDeathAlone | kDeathOthers, 1), 4096},
      {"killed_near_limit", death_by(0, kCounted | kDeathAlone, 1), 700},
      {"killed_externally", death_by(9, kCounted | kDeathAtOnce, 0), 4096},
      {"killed_externally", death_by(9, kDeathAtOnce, 1), 4096},  // no counter
      {"crashed", death_by(6, kCounted | kDeathAlone, 1), 4096},
      // The machine's counter is proof only if its memory was short.
      {"killed_externally", death_by(9, kDeathSystemCounted | kDeathAtOnce, 1), 4096},
      // Near a limit: 660 MiB including what is not resident yet.
      {"killed_near_limit", death_by(9), 733},
      {"killed_externally", death_by(9), 734},
      {"killed_near_limit", death_by(0), 733},
      {"unknown", death_by(0), 734},
      {"killed_near_limit", death_by(9, kDeathLogRead), 733},
      // SIGTERM: current usage counts, not what may become resident.
      {"terminated_under_pressure", death_by(15), 688},
      {"killed_externally", death_by(15), 700},
      {"killed_externally", death_by(2), 688},
      {"killed_externally", death_by(64), 4096},
      {"crashed", death_by(11), 688},
      {"crashed", death_by(0x80 | 6), 4096},  // with a core file
      {"unknown", death_by(0, kDeathEarlierBoot), 700},
  };
  int number = 0;
  for (const auto& row : rows) {
    CAPTURE(number);
    Killed session{row.limit * kMiB};
    CHECK(name_of(session.verdict(row.death).code) == row.code);
    ++number;
  }
  CHECK(number == 29);
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
            "cgroup: working set 620.0 MiB at its last check + 40.0 MiB allocated and not yet "
            "resident, 100 % of 660.0 MiB",
            "machine: 8.0 GiB available of 16.0 GiB RAM at its last check"});
  CHECK(verdict.limit == LimitKind::cgroup);
  CHECK(verdict.limit_bytes == 660 * kMiB);
  CHECK(verdict.limit_used_bytes == 620 * kMiB);
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
            "the kernel's count of OOM kills in its cgroup: 0, unchanged since its last check",
            "cgroup: working set 620.0 MiB at its last check + 40.0 MiB allocated and not yet "
            "resident, 16 % of 4.0 GiB",
            "machine: 8.0 GiB available of 16.0 GiB RAM at its last check",
            "memory pressure, of the last 10 s: some 1.05 %, full 0.00 %",
            "the signal came from process 77"});
  CHECK(verdict.limit == LimitKind::none);
}

TEST_CASE("killed near its limit by an unknown sender") {
  Killed session{700 * kMiB};
  CHECK(std::string{session.verdict(death_by(9)).summary} ==
        "python3.11 was killed by SIGKILL, at 94 % of its cgroup's limit; it held 640.0 MiB");
  CHECK(std::string{session.verdict(death_by(0)).summary} ==
        "python3.11 ended in an unknown way, at 94 % of its cgroup's limit; it held 640.0 MiB");
  session.header().health.cgroup_limit_bytes = kUnlimited;
  session.header().soft_limit_bytes = 650 * kMiB;
  CHECK(std::string{session.verdict(death_by(15)).summary} ==
        "python3.11 was killed by SIGTERM, at 98 % of its soft limit; it held 640.0 MiB");
  session.header().soft_limit_bytes = 0;
  session.header().health.available_bytes = 1024 * kMiB;
  CHECK(std::string{session.verdict(death_by(9)).summary} ==
        "python3.11 was killed by SIGKILL, at 93 % of the machine's RAM; it held 640.0 MiB");
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
    CHECK(verdict.limit == LimitKind::none);
  }
}
