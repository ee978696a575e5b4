// Verdicts on failed requests, and on processes that were near a limit.
#include "common/verdict/verdict.h"

#include <doctest/doctest.h>

#include <cerrno>
#include <string>

#include "tests/unit/common/bundle/session_image.h"

using namespace oomrec::verdict;
using namespace oomrec;
using session::CountedLimits;
using session::Failure;
using session::kUnlimited;
using session::SessionImage;

// --- The verdict on a failure that no limit on bytes explains: what failed, and why

namespace {

constexpr std::uint64_t kMiB = 1 << 20;

struct Refusal : session::TrainingSession {
  Refusal(Api api, int error, std::uint64_t bytes = 8 * kMiB)
      : refused(add<Failure>(session::TableId::failures, &entry)) {
    refused.api = static_cast<std::uint16_t>(api);
    refused.space = static_cast<std::uint8_t>(Space::map);
    refused.error = error;
    refused.bytes = bytes;
    refused.soft_limit_bytes = refused.rlimit_as_bytes = refused.rlimit_data_bytes = kUnlimited;
    refused.ram_bytes = header().ram_bytes;
    CountedLimits& at = refused.counted;
    at.own_tasks_limit = at.cgroup_tasks_limit = at.commit_limit_bytes = kUnlimited;
    at.threads_max = at.pid_max = at.max_mappings = 30'000;
    at.own_tasks = 5;
    at.cgroup_tasks = 10;
    at.machine_tasks = 200;
    at.mappings = 300;
    at.committed_bytes = 1000 * kMiB;
  }
  verdict::Verdict verdict() const {
    return verdict::verdict_of(view(), Trigger::allocation_failed, entry);
  }

  std::uint32_t entry = 0;
  Failure& refused;
};

std::string evidence(const verdict::Verdict& verdict) {
  std::string lines;
  for (unsigned i = 0; i < verdict.evidence_count; ++i)
    lines += std::string{verdict.evidence[i]} + "\n";
  return lines;
}

bool has(const std::string& text, const char* part) { return text.find(part) != text.npos; }

}  // namespace

TEST_CASE("a thread beyond a limit on tasks: the limit that is reached") {
  Refusal by_cgroup{Api::pthread_create, EAGAIN};
  by_cgroup.refused.counted.cgroup_tasks_limit = 10;
  by_cgroup.refused.counted.own_tasks_limit = 100;
  verdict::Verdict verdict = by_cgroup.verdict();
  CHECK(name_of(verdict.code) == "thread_creation_failed");
  CHECK(verdict.limit.kind == LimitKind::pids);
  CHECK(verdict.limit.bytes == 10);
  CHECK(has(verdict.summary, "the cgroup's limit of tasks (pids.max) of 10 is reached (tasks 10)"));
  CHECK(
      has(evidence(verdict), "tasks 10 + request 1 > the cgroup's limit of tasks (pids.max) 10\n"));

  Refusal by_machine{Api::pthread_create, EAGAIN};
  by_machine.refused.counted.threads_max = 200;
  CHECK(by_machine.verdict().limit.kind == LimitKind::threads_max);

  Refusal by_numbers{Api::fork, EAGAIN, 0};
  by_numbers.refused.counted.pid_max = 200;
  CHECK(by_numbers.verdict().limit.kind == LimitKind::pid_max);
  CHECK(name_of(by_numbers.verdict().code) == "fork_failed");
}

TEST_CASE("RLIMIT_NPROC counts other processes too: it is the last explanation") {
  Refusal refusal{Api::fork, EAGAIN, 0};
  refusal.refused.counted.own_tasks_limit = 100;
  verdict::Verdict verdict = refusal.verdict();
  CHECK(name_of(verdict.code) == "fork_failed");
  CHECK(verdict.limit.kind == LimitKind::rlimit_nproc);
  CHECK(has(verdict.summary, "(RLIMIT_NPROC) of 100 is the only one that explains it"));
  refusal.refused.counted.own_tasks_limit = 0;
  verdict = refusal.verdict();
  CHECK(has(verdict.summary, "(RLIMIT_NPROC) of 0 is reached"));

  refusal.refused.counted.own_tasks_limit = kUnlimited;
  verdict = refusal.verdict();
  CHECK(verdict.limit.kind == LimitKind::none);
  CHECK(has(verdict.summary, "no limit that can be read explains it (EAGAIN"));
}

TEST_CASE("a thread whose stack could not be mapped: why the mapping failed") {
  Refusal refusal{Api::pthread_create, ENOMEM};
  refusal.refused.rlimit_as_bytes = 100 * kMiB;
  refusal.refused.vm_bytes = 95 * kMiB;
  CHECK(name_of(refusal.verdict().code) == "thread_creation_failed");
  CHECK(refusal.verdict().limit.kind == LimitKind::rlimit_as);

  refusal.refused.rlimit_as_bytes = kUnlimited;
  refusal.refused.counted.mappings = 30'001;
  CHECK(refusal.verdict().limit.kind == LimitKind::max_map_count);

  refusal.refused.bytes = std::uint64_t{1} << 48;
  CHECK(name_of(refusal.verdict().code) == "thread_creation_failed");
  CHECK(has(refusal.verdict().summary, "no address space is that large"));
}

TEST_CASE("a limit is reached, or would be exceeded, or is less than the request") {
  Refusal refusal{Api::mmap, ENOMEM};
  refusal.refused.rlimit_as_bytes = 100 * kMiB;
  refusal.refused.vm_bytes = 95 * kMiB;
  CHECK(has(refusal.verdict().summary, " of 100.0 MiB is reached ("));

  refusal.refused.vm_bytes = 50 * kMiB;
  refusal.refused.bytes = 60 * kMiB;
  CHECK(has(refusal.verdict().summary, "refused: that would exceed "));
  CHECK(has(refusal.verdict().summary, " of 100.0 MiB ("));

  refusal.refused.bytes = 101 * kMiB;
  CHECK(has(refusal.verdict().summary, "refused: that is more than "));
}

TEST_CASE("a mapping: beyond max_map_count, or beyond CommitLimit") {
  Refusal refusal{Api::mmap, ENOMEM};
  verdict::Verdict verdict = refusal.verdict();
  CHECK(name_of(verdict.code) == "mapping_failed");
  CHECK(verdict.limit.kind == LimitKind::none);
  CHECK(has(evidence(verdict), "mappings 300 + request 1 <= the limit of mappings"));

  refusal.refused.counted.mappings = 30'000;
  verdict = refusal.verdict();
  CHECK(name_of(verdict.code) == "mapping_failed");
  CHECK(has(verdict.summary, "(vm.max_map_count) of 30,000 is reached (mappings 30,000)"));

  refusal.refused.counted.commit_limit_bytes = 1007 * kMiB;
  verdict = refusal.verdict();
  CHECK(verdict.limit.kind == LimitKind::commit);
  CHECK(has(evidence(verdict), "Committed_AS 1000.0 MiB + request 8.0 MiB > the machine's"));
  refusal.refused.counted.commit_limit_bytes = 1008 * kMiB;
  CHECK(refusal.verdict().limit.kind == LimitKind::max_map_count);

  // For the heap the code stays, and the limit has the details.
  refusal.refused.space = static_cast<std::uint8_t>(Space::heap);
  refusal.refused.api = static_cast<std::uint16_t>(Api::malloc);
  CHECK(name_of(refusal.verdict().code) == "allocation_failed");
  CHECK(refusal.verdict().limit.kind == LimitKind::max_map_count);
}

TEST_CASE("a limit on bytes that explains a mapping comes first") {
  Refusal refusal{Api::mmap, ENOMEM};
  refusal.refused.counted.mappings = 30'001;
  refusal.refused.rlimit_data_bytes = 10 * kMiB;
  refusal.refused.data_bytes = 9 * kMiB;
  CHECK(name_of(refusal.verdict().code) == "data_limit");
  refusal.refused.data_bytes = kMiB;
  CHECK(name_of(refusal.verdict().code) == "mapping_failed");
}

TEST_CASE("a library of unknown size: the address space is the last explanation") {
  Refusal refusal{Api::dlopen, ENOMEM, 0};
  CHECK(name_of(refusal.verdict().code) == "mapping_failed");
  CHECK(refusal.verdict().limit.kind == LimitKind::none);
  refusal.refused.rlimit_as_bytes = 512 * kMiB;
  refusal.refused.vm_bytes = 6 * kMiB;
  CHECK(refusal.verdict().limit.kind == LimitKind::rlimit_as);
  CHECK(name_of(refusal.verdict().code) == "mapping_failed");
}

TEST_CASE("what could not be read excludes nothing") {
  // No descriptor was left for /proc/self/status.
  Refusal refusal{Api::malloc, ENOMEM};
  refusal.refused.bytes = 900 * kMiB;
  refusal.refused.rlimit_as_bytes = 1000 * kMiB;
  refusal.refused.vm_bytes = 0;
  const verdict::Verdict possible = refusal.verdict();
  CHECK(possible.limit.kind == LimitKind::rlimit_as);
  CHECK(possible.certainty == Certainty::possible);
  CHECK(has(evidence(possible), "what is in use could not be read"));
  CHECK_FALSE(has(evidence(possible), "in use 0 bytes"));
  refusal.refused.bytes = 2000 * kMiB;
  const verdict::Verdict proven = refusal.verdict();
  CHECK(proven.certainty == Certainty::proven);
  CHECK_FALSE(has(evidence(proven), "in use 0 bytes"));
  refusal.refused.vm_bytes = 50 * kMiB;
  refusal.refused.bytes = 900 * kMiB;
  CHECK(refusal.verdict().limit.kind == LimitKind::none);
}

TEST_CASE("an old recording without these figures") {
  Refusal refusal{Api::fork, EAGAIN, 0};
  refusal.refused.counted = {};
  CHECK(name_of(refusal.verdict().code) == "fork_failed");
  CHECK(refusal.verdict().limit.kind == LimitKind::none);
  refusal.refused.error = ENOMEM;
  CHECK(refusal.verdict().limit.kind == LimitKind::none);
}

TEST_CASE("an injected failure names its rule and nothing else") {
  Refusal refusal{Api::pthread_create, EAGAIN};
  refusal.refused.flags = session::kFailureInjected;
  refusal.refused.rule = refusal.string("pthread_create:nth=2");
  refusal.refused.rlimit_as_bytes = kMiB;
  const verdict::Verdict verdict = refusal.verdict();
  CHECK(name_of(verdict.code) == "injected");
  CHECK(verdict.limit.kind == LimitKind::none);
  CHECK(has(evidence(verdict), "the rule pthread_create:nth=2 of --fail"));
}

// --- The verdicts on a near limit and on memory pressure

TEST_CASE("the cgroup's limit counts what is charged; untouched memory has a line of its own") {
  SessionImage image;
  session::Health& health = image.header().health;
  health.cgroup_limit_bytes = 200 * kMiB;
  health.cgroup_used_bytes = 192 * kMiB;
  health.rss_bytes = 182 * kMiB;
  health.live_bytes = 1182 * kMiB;
  const verdict::Verdict verdict = verdict::verdict_of(image.view(), Trigger::near_limit, 0);
  CHECK(verdict.code == VerdictCode::near_limit);
  CHECK(verdict.limit.kind == LimitKind::cgroup);
  CHECK(verdict.limit.bytes == 200 * kMiB);
  CHECK(verdict.limit.used_bytes == 192 * kMiB);
  CHECK(std::string{verdict.summary} ==
        "python3.11 is at 96 % of the cgroup's limit of 200.0 MiB (working set 192.0 MiB): the "
        "kernel will kill it at the limit, unless there is swap");
  CHECK(has(evidence(verdict),
            "allocated but never touched: 1000.0 MiB; the kernel counts it as used only once it is "
            "touched\n"));
  image.header().soft_limit_bytes = 4096 * kMiB;
  CHECK(has(evidence(verdict::verdict_of(image.view(), Trigger::near_limit, 0)),
            "only once it is touched; the soft limit counts it already\n"));
  health.swap_bytes = 1000 * kMiB;
  CHECK_FALSE(
      has(evidence(verdict::verdict_of(image.view(), Trigger::near_limit, 0)), "never touched"));
}

TEST_CASE("resident memory is not counted twice") {
  SessionImage image;
  session::Health& health = image.header().health;
  health.cgroup_limit_bytes = 200 * kMiB;
  health.cgroup_used_bytes = 196 * kMiB;
  health.rss_bytes = 190 * kMiB;
  health.live_bytes = 185 * kMiB;
  const std::string summary = verdict::verdict_of(image.view(), Trigger::near_limit, 0).summary;
  CHECK(has(summary, "at 98 % of the cgroup's limit of 200.0 MiB (working set 196.0 MiB)"));
}

TEST_CASE("the nearest of several limits counts") {
  SessionImage image;
  session::Header& header = image.header();
  header.health.cgroup_limit_bytes = 200 * kMiB;
  header.health.cgroup_used_bytes = 100 * kMiB;
  header.health.live_bytes = 95 * kMiB;
  header.health.rss_bytes = 95 * kMiB;
  header.soft_limit_bytes = 100 * kMiB;
  CHECK(verdict::verdict_of(image.view(), Trigger::near_limit, 0).limit.kind == LimitKind::soft);
  header.health.vm_bytes = 990 * kMiB;
  header.health.rlimit_as_bytes = 1000 * kMiB;
  CHECK(verdict::verdict_of(image.view(), Trigger::near_limit, 0).limit.kind ==
        LimitKind::rlimit_as);
}

TEST_CASE("pressure has the faults and the swap of the process") {
  SessionImage image;
  session::Health& health = image.header().health;
  health.pressure_some = 6050;
  health.pressure_full = 4507;
  health.major_faults = 12345;
  health.swap_bytes = 300 * kMiB;
  const verdict::Verdict verdict = verdict::verdict_of(image.view(), Trigger::pressure, 0);
  CHECK(verdict.code == VerdictCode::memory_pressure);
  CHECK(has(verdict.summary, "is thrashing: it waits for memory instead of working"));
  CHECK(has(verdict.summary, "all tasks of the machine or its cgroup did so for 45.07 % of the"));
  CHECK(has(evidence(verdict), "swapped out 300.0 MiB; 12345 major faults"));
  CHECK(has(evidence(verdict), "some 60.50 %, full 45.07 %"));
}

TEST_CASE("pressure on some tasks is reported as theirs") {
  SessionImage image;
  session::Health& health = image.header().health;
  health.pressure_some = 1250;
  health.pressure_full = 3;
  const verdict::Verdict verdict = verdict::verdict_of(image.view(), Trigger::pressure, 0);
  CHECK(has(verdict.summary, "some tasks of the machine or its cgroup did so for 12.50 % of the"));
  health.pressure_some = 3;
  CHECK(!has(verdict::verdict_of(image.view(), Trigger::pressure, 0).summary, "%"));
}

TEST_CASE("a reading from outside takes precedence over the process' own") {
  SessionImage image;
  image.header().health.pressure_full = 100;
  auto seen = std::make_unique<session::Health>();
  seen->pressure_some = 3100;
  seen->pressure_full = 3000;
  verdict::Verdict verdict;
  verdict::explain(verdict, image.view(), {.trigger = Trigger::pressure, .health = seen.get()});
  CHECK(has(verdict.summary, "30.00 %"));
}
