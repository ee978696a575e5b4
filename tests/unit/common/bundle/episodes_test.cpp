// Which bundles tell of the same, and which of them is the cause.
#include "common/bundle/episodes.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "common/bundle/manifest.h"

using namespace oomrec;
using namespace oomrec::bundle;

namespace {

constexpr std::uint64_t kStart = 1000;

// A bundle of process `process`, written at `at`: seconds after kStart.
EpisodeBundle told(std::uint64_t process, std::uint64_t at, VerdictCode verdict,
                   std::uint64_t tree = 1) {
  EpisodeBundle bundle{};
  bundle.name = 100 * process + at + 1;
  bundle.machine = 1;
  bundle.process = process;
  bundle.tree = tree;
  bundle.started_s = kStart;
  bundle.created_s = kStart + at;
  bundle.process_bundle = static_cast<std::uint32_t>(at + 1);
  bundle.verdict = verdict;
  bundle.trigger = Trigger::killed;
  return bundle;
}
EpisodeBundle failed(std::uint64_t process, std::uint64_t at,
                     VerdictCode verdict = VerdictCode::soft_limit) {
  EpisodeBundle bundle = told(process, at, verdict);
  bundle.trigger = Trigger::allocation_failed;
  return bundle;
}
EpisodeBundle follower(std::uint64_t process, std::uint64_t at, const EpisodeBundle& worker) {
  EpisodeBundle bundle = told(process, at, VerdictCode::child_killed);
  bundle.follows = worker.name;
  return bundle;
}
EpisodeBundle started_later(EpisodeBundle bundle, std::uint64_t at) {
  bundle.started_s = kStart + at;
  return bundle;
}
EpisodeBundle recovered(EpisodeBundle bundle) {
  bundle.recovered = true;
  return bundle;
}

constexpr auto kKill = VerdictCode::cgroup_oom_kill;
constexpr auto kNear = VerdictCode::near_limit;
constexpr auto kByHand = VerdictCode::killed_externally;

struct Row {
  std::string what;
  std::vector<EpisodeBundle> bundles;
  std::vector<std::string> expected;  // for each: index of its root, and its role
  std::size_t cause;                  // index
};

}  // namespace

TEST_CASE("bundles are grouped into episodes") {
  const EpisodeBundle worker = told(2, 10, kKill);
  const Row rows[] = {
      {"one", {failed(1, 0)}, {"0 root"}, 0},
      {"a warning and the death after it, however much later",
       {told(1, 0, kNear), told(1, 500, kKill)},
       {"1 warning", "1 root"},
       1},
      {"a job: two workers near the limit, one is killed, their parent exits",
       {told(2, 8, kNear), told(3, 9, kNear), worker, follower(1, 12, worker)},
       {"2 warning", "2 warning", "2 root", "2 consequence"},
       2},
      {"a parent that follows from the first of two kills",
       {worker, told(3, 11, kKill), follower(1, 12, worker)},
       {"0 root", "1 root", "0 consequence"},
       0},
      {"workers that a parent killed after the death",
       {worker, told(3, 11, kByHand), told(4, 12, VerdictCode::unknown)},
       {"0 root", "0 consequence", "0 consequence"},
       0},
      {"a worker killed by hand is no consequence of what comes after it",
       {told(2, 5, kByHand), failed(3, 9)},
       {"0 root", "1 root"},
       1},
      {"a second failure of the process before the first is resolved",
       {failed(1, 0), failed(1, 5)},
       {"0 root", "0 aftershock"},
       0},
      {"two failures a minute apart", {failed(1, 0), failed(1, 60)}, {"0 root", "1 root"}, 1},
      {"a failure that was recovered from, then another",
       {recovered(failed(1, 0)), failed(1, 5)},
       {"0 root", "1 root"},
       1},
      {"a kill soon after a failure is graver",
       {failed(1, 0), told(1, 5, kKill)},
       {"1 warning", "1 root"},
       1},
      {"two failures, then a kill",
       {failed(1, 0), failed(1, 1), told(1, 5, kKill)},
       {"2 warning", "2 warning", "2 root"},
       2},
      {"independent jobs", {failed(1, 0), told(2, 1, kKill, 9)}, {"0 root", "1 root"}, 1},
      {"a warning of another job is not folded, and does not hide the death",
       {told(1, 0, kKill), told(2, 5, kNear, 9)},
       {"0 root", "1 root"},
       0},
      {"a warning long after the death is news",
       {told(1, 0, kKill), told(2, 50, kNear, 9)},
       {"0 root", "1 root"},
       1},
      {"the worker that replaced a killed one nears the limit",
       {told(1, 0, kKill), started_later(told(2, 20, kNear), 1)},
       {"0 root", "1 root"},
       0},
      {"ten seconds after a kill, the kill of its replacement is another incident",
       {told(1, 0, kKill), started_later(told(2, 8, kKill), 1)},
       {"0 root", "1 root"},
       1},
      {"workers at the limit together: the first one's death is the cause",
       {told(1, 0, kKill), told(2, 1, kKill), told(3, 2, kKill)},
       {"0 root", "1 root", "2 root"},
       0},
      {"a request after the failure",
       {failed(1, 0), failed(1, 2, VerdictCode::requested)},
       {"0 root", "0 aftershock"},
       0},
      {"a request long after it",
       {failed(1, 0), failed(1, 99, VerdictCode::requested)},
       {"0 root", "1 root"},
       1},
      {"an injected failure tells nothing of memory",
       {failed(1, 0), failed(1, 2, VerdictCode::injected)},
       {"0 root", "1 root"},
       1},
  };
  for (Row row : rows) {
    CAPTURE(row.what);
    group_episodes(row.bundles);
    std::vector<std::string> found;
    for (const EpisodeBundle& bundle : row.bundles)
      found.push_back(std::to_string(bundle.root) + " " + std::string{name_of(bundle.role)});
    CHECK(found == row.expected);
    CHECK(newest_cause(row.bundles) == row.cause);
  }
  CHECK(newest_cause({}) == 0);
}

TEST_CASE("a manifest's keys decide, and a missing one links nothing") {
  const std::string manifest = R"({"created_at_utc": "2026-11-21T10:15:30Z", "reason": "killed",
    "verdict": "child_killed", "process": "ab-12-99", "process_bundle": 3,
    "process_started_at_utc": "2026-11-21T10:15:29Z", "process_tree": "ab-7-50",
    "follows": "../other/oom_cpu_20261121_101500_002"})";
  const EpisodeBundle bundle = episode_bundle("oom_cpu_20261121_101530_001", manifest_in(manifest));
  CHECK(bundle.created_s == 1795256130);
  CHECK(bundle.started_s == 1795256129);
  CHECK(bundle.number == 1);
  CHECK(bundle.process_bundle == 3);
  CHECK(bundle.verdict == VerdictCode::child_killed);
  CHECK(bundle.trigger == Trigger::killed);
  CHECK(bundle.follows == episode_bundle("oom_cpu_20261121_101500_002", {}).name);
  CHECK(bundle.tree != 0);
  const EpisodeBundle old =
      episode_bundle("oom_cpu_20261121_101530_002", manifest_in(R"({"follows": null})"));
  CHECK(old.follows == 0);
  CHECK(old.tree == 0);
  CHECK(old.created_s == 0);
  CHECK(seconds_of("1970-01-02T00:00:01Z") == 86'401);
  CHECK(seconds_of("2024-02-29T23:59:59Z") == 1709251199);
  CHECK(seconds_of("yesterday") == 0);
}
