// Verdicts on failed requests, and on processes that were near a limit.
#include "common/verdict/verdict.h"

#include <doctest/doctest.h>

#include <cerrno>
#include <string>

#include "tests/unit/common/bundle/session_image.h"
#include "tests/unit/common/verdict/page.h"

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
  show("a thread beyond pids.max", by_cgroup.verdict());

  Refusal by_machine{Api::pthread_create, EAGAIN};
  by_machine.refused.counted.threads_max = 200;
  show("a thread beyond kernel.threads-max", by_machine.verdict());

  Refusal by_numbers{Api::fork, EAGAIN, 0};
  by_numbers.refused.counted.pid_max = 200;
  show("a process beyond kernel.pid_max", by_numbers.verdict());
}

TEST_CASE("RLIMIT_NPROC counts other processes too: it is the last explanation") {
  Refusal refusal{Api::fork, EAGAIN, 0};
  refusal.refused.counted.own_tasks_limit = 100;
  show("a process that only RLIMIT_NPROC explains", refusal.verdict());
  refusal.refused.counted.own_tasks_limit = 0;
  show("a process where RLIMIT_NPROC is 0", refusal.verdict());
  refusal.refused.counted.own_tasks_limit = kUnlimited;
  show("a process that no limit explains", refusal.verdict());
}

TEST_CASE("a thread whose stack could not be mapped: why the mapping failed") {
  Refusal refusal{Api::pthread_create, ENOMEM};
  refusal.refused.rlimit_as_bytes = 100 * kMiB;
  refusal.refused.vm_bytes = 95 * kMiB;
  show("a thread's stack beyond RLIMIT_AS", refusal.verdict());
  refusal.refused.rlimit_as_bytes = kUnlimited;
  refusal.refused.counted.mappings = 30'001;
  show("a thread's stack beyond vm.max_map_count", refusal.verdict());
  refusal.refused.bytes = std::uint64_t{1} << 48;
  show("a thread's stack of 256 TiB", refusal.verdict());
}

TEST_CASE("a limit is reached, or would be exceeded, or is less than the request") {
  Refusal refusal{Api::mmap, ENOMEM};
  refusal.refused.rlimit_as_bytes = 100 * kMiB;
  refusal.refused.vm_bytes = 95 * kMiB;
  show("RLIMIT_AS is reached", refusal.verdict());
  refusal.refused.vm_bytes = 50 * kMiB;
  refusal.refused.bytes = 60 * kMiB;
  show("RLIMIT_AS would be exceeded", refusal.verdict());
  refusal.refused.bytes = 101 * kMiB;
  show("a request larger than RLIMIT_AS", refusal.verdict());
}

TEST_CASE("a mapping: beyond max_map_count, or beyond CommitLimit") {
  Refusal refusal{Api::mmap, ENOMEM};
  show("a mapping that no limit explains", refusal.verdict());
  refusal.refused.counted.mappings = 30'000;
  show("a mapping beyond vm.max_map_count", refusal.verdict());
  refusal.refused.counted.commit_limit_bytes = 1007 * kMiB;
  show("a mapping beyond CommitLimit", refusal.verdict());
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
  show("RLIMIT_DATA is reached", refusal.verdict());
  refusal.refused.data_bytes = kMiB;
  CHECK(name_of(refusal.verdict().code) == "mapping_failed");
}

TEST_CASE("a library of unknown size: the address space is the last explanation") {
  Refusal refusal{Api::dlopen, ENOMEM, 0};
  CHECK(refusal.verdict().limit.kind == LimitKind::none);
  refusal.refused.rlimit_as_bytes = 512 * kMiB;
  refusal.refused.vm_bytes = 6 * kMiB;
  show("a library that only RLIMIT_AS explains", refusal.verdict());
}

TEST_CASE("locked memory") {
  Refusal refusal{Api::mlock, ENOMEM};
  refusal.refused.pools.locked_limit_bytes = kMiB;
  show("memory locked beyond RLIMIT_MEMLOCK", refusal.verdict());
}

TEST_CASE("what could not be read excludes nothing") {
  // No descriptor was left for /proc/self/status.
  Refusal refusal{Api::malloc, ENOMEM};
  refusal.refused.bytes = 900 * kMiB;
  refusal.refused.rlimit_as_bytes = 1000 * kMiB;
  refusal.refused.vm_bytes = 0;
  const verdict::Verdict possible = refusal.verdict();
  show("RLIMIT_AS, and what is in use could not be read", possible);
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
  show("a rule of --fail", refusal.verdict());
}

TEST_CASE("the first limit that explains a failure is the verdict") {
  struct Row {
    const char* facts;
    std::uint64_t bytes, soft, live, data_limit, data, as_limit, vm;
  };
  const Row rows[] = {
      {"the soft limit is reached", 10 * kMiB, 100 * kMiB, 95 * kMiB, 100 * kMiB, 95 * kMiB, 0, 0},
      {"RLIMIT_DATA and RLIMIT_AS are reached", 10 * kMiB, 0, 0, 100 * kMiB, 95 * kMiB, 100 * kMiB,
       95 * kMiB},
      {"RLIMIT_AS is reached by malloc", 10 * kMiB, 0, 0, 100 * kMiB, 5 * kMiB, 100 * kMiB,
       95 * kMiB},
      {"a small block, with less than a MiB below RLIMIT_AS", 24, 0, 0, 0, 0, 100 * kMiB,
       100 * kMiB - 4096},
      {"a request larger than RAM and swap", 20'000 * kMiB, 0, 0, 0, 0, session::kUnlimited,
       95 * kMiB},
      {"a request of more than 16 EiB", session::kUnlimited, 0, 0, 0, 0, 0, 0},
      {"malloc, far from each limit", 10 * kMiB, 100 * kMiB, 5 * kMiB, 0, 0, 0, 0},
  };
  for (const Row& row : rows) {
    session::TrainingSession session;
    auto& f = session.add<session::Failure>(session::TableId::failures, &session.failure);
    f.api = static_cast<std::uint16_t>(Api::malloc);
    f.bytes = row.bytes;
    f.soft_limit_bytes = row.soft;
    f.live_bytes = row.live;
    f.rlimit_data_bytes = row.data_limit;
    f.data_bytes = row.data;
    f.rlimit_as_bytes = row.as_limit;
    f.vm_bytes = row.vm;
    f.ram_bytes = 16'384 * kMiB;
    f.error = 12;
    const verdict::Verdict verdict =
        verdict::verdict_of(session.view(), Trigger::allocation_failed, session.failure);
    show(row.facts, verdict);
    const verdict::Verdict simulated =
        verdict::verdict_of(session.view(), Trigger::simulated, session.failure);
    CHECK(simulated.code == verdict.code);
    CHECK(std::string{simulated.evidence[0]} == "simulated by `oomrec simulate`");
  }
}

TEST_CASE("no failure: the reason of a request, or of an exception") {
  const session::TrainingSession session;
  const auto show_of = [&](const char* facts, Trigger trigger, std::string_view reason = {}) {
    show(facts, verdict::verdict_of(session.view(), trigger, 0, reason));
  };
  show_of("a bundle was requested", Trigger::request);
  show_of("a bundle was requested with words", Trigger::request, "epoch 3");
  show_of("a bundle was requested by --dump-at-exit", Trigger::request, verdict::kReasonAtExit);
  show_of("oomrec simulate", Trigger::simulated);
  show_of("an exception", Trigger::exception);
  show_of("an exception of another process", Trigger::exception, verdict::kReasonOfWorker);
  show_of("nothing is known", Trigger::none);
}

// --- The verdicts on a near limit and on memory pressure

TEST_CASE("the cgroup's limit counts what is charged; untouched memory has a line of its own") {
  SessionImage image;
  session::Health& health = image.header().health;
  health.cgroup_limit_bytes = 200 * kMiB;
  health.cgroup_used_bytes = 192 * kMiB;
  health.rss_bytes = 182 * kMiB;
  health.live_bytes = 1182 * kMiB;
  show("at 96 % of the cgroup's limit, with 1000 MiB never touched",
       verdict::verdict_of(image.view(), Trigger::near_limit, 0));
  image.header().soft_limit_bytes = 4096 * kMiB;
  show("the same with a soft limit", verdict::verdict_of(image.view(), Trigger::near_limit, 0));
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
  CHECK(verdict::verdict_of(image.view(), Trigger::near_limit, 0).limit.used_bytes == 196 * kMiB);
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
  show("all tasks wait for memory", verdict::verdict_of(image.view(), Trigger::pressure, 0));
}

TEST_CASE("pressure on some tasks is reported as theirs") {
  SessionImage image;
  session::Health& health = image.header().health;
  health.pressure_some = 1250;
  health.pressure_full = 3;
  show("some tasks wait for memory", verdict::verdict_of(image.view(), Trigger::pressure, 0));
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
