#include "common/bundle/retention.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

#include "common/bundle/directory.h"
#include "common/text/expand.h"
#include "tests/unit/common/bundle/scratch.h"
#include "tests/unit/common/bundle/session_image.h"

using namespace oomrec;
using namespace oomrec::bundle;

namespace {

StoredBundle stored(std::uint64_t created, std::uint64_t process, std::uint32_t process_bundle,
                    bool is_about_memory = true, std::uint64_t bytes = 10) {
  StoredBundle bundle{};
  bundle.episode.created_s = created;
  bundle.episode.process = process;
  bundle.episode.process_bundle = process_bundle;
  bundle.episode.verdict =
      is_about_memory ? VerdictCode::soft_limit : VerdictCode::killed_externally;
  bundle.bytes = bytes;
  bundle.is_about_memory = is_about_memory;
  return bundle;
}

// As told by another bundle, or by nobody else's.
StoredBundle folded(StoredBundle bundle) {
  bundle.episode.role = EpisodeRole::consequence;
  return bundle;
}
StoredBundle warning(StoredBundle bundle) {
  bundle.episode.verdict = VerdictCode::near_limit;
  return bundle;
}

StoredBundle unshipped(StoredBundle bundle) {
  bundle.is_unshipped = true;
  return bundle;
}

StoredBundle just_written(StoredBundle bundle) {
  bundle.just_written = true;
  return bundle;
}

Cause cause_of(Trigger trigger) {
  Cause cause;
  cause.trigger = trigger;
  cause.alive = false;
  return cause;
}

// Whether the first bundle of that second is there.
bool has(const Scratch& scratch, const std::string& second) {
  return std::filesystem::exists(scratch.dumps / ("oom_cpu_" + second + "_001"));
}

void make_older(const std::filesystem::path& path, std::chrono::minutes age) {
  std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() - age);
}

struct Row {
  const char* what;
  std::vector<StoredBundle> bundles;
  Bounds bounds;
  std::vector<std::uint64_t> removed;  // by created
};

}  // namespace

TEST_CASE("bundles are removed in the order of their worth") {
  const Row rows[] = {
      {"within the bounds nothing is removed", {stored(1, 1, 1), stored(2, 2, 1)}, {2, 20}, {}},
      {"the oldest is removed", {stored(2, 2, 1), stored(1, 1, 1), stored(3, 3, 1)}, {2, 0}, {1}},
      {"a verdict that is not about memory is removed before the oldest",
       {stored(1, 1, 1), stored(2, 2, 1, false), stored(3, 3, 1)},
       {2, 0},
       {2}},
      {"a later bundle of a process is removed before the oldest",
       {stored(1, 1, 1), stored(2, 2, 1), stored(3, 2, 2), stored(4, 3, 1)},
       {3, 0},
       {3}},
      {"a later bundle without its first counts as any other",
       {stored(1, 1, 1), stored(2, 2, 2), stored(3, 3, 1)},
       {2, 0},
       {1}},
      {"not about memory is removed before later ones",
       {stored(1, 1, 1), stored(2, 1, 2), stored(3, 2, 1, false), stored(4, 3, 1)},
       {2, 0},
       {2, 3}},
      {"what an earlier one tells is removed before later ones of a process",
       {stored(1, 1, 1), stored(2, 1, 2), folded(stored(3, 2, 1)), stored(4, 3, 1)},
       {2, 0},
       {2, 3}},
      {"a kill outlives older warnings of processes that live",
       {stored(1, 1, 1), warning(stored(2, 2, 1)), warning(stored(3, 3, 1)), stored(4, 4, 1)},
       {2, 0},
       {2, 3}},
      {"a kill counts as its process' first, although a warning came before",
       {warning(stored(1, 1, 1)), stored(2, 1, 2), stored(3, 2, 1)},
       {2, 0},
       {1}},
      {"what is shipped is removed before what is not, whatever it is",
       {unshipped(stored(1, 1, 1, false)), stored(2, 2, 1), stored(3, 3, 1),
        unshipped(stored(4, 4, 1))},
       {0, 20},
       {2, 3}},
      {"what is not shipped does not count",
       {unshipped(stored(1, 1, 1)), stored(2, 2, 1), stored(3, 3, 1), unshipped(stored(4, 4, 1)),
        unshipped(stored(5, 5, 1))},
       {1, 0},
       {2}},
      {"nor does it make room for what is shipped",
       {unshipped(stored(1, 1, 1)), just_written(stored(2, 2, 1)), stored(3, 3, 1)},
       {1, 0},
       {}},
      {"of what is not shipped the oldest is removed",
       {unshipped(stored(1, 1, 1)), unshipped(stored(2, 2, 1)), unshipped(stored(3, 3, 1))},
       {1, 20},
       {1}},
      {"the newest stays, whatever it is",
       {stored(1, 1, 1), stored(2, 1, 2, false, 1000)},
       {1, 5},
       {1}},
      {"bytes count too",
       {stored(1, 1, 1, true, 60), stored(2, 2, 1, true, 60), stored(3, 3, 1, true, 60)},
       {0, 130},
       {1}},
      {"without bounds nothing is removed", {stored(1, 1, 1), stored(2, 2, 1)}, {0, 0}, {}},
  };
  for (Row row : rows) {
    CAPTURE(row.what);
    select_removals(row.bundles, row.bounds);
    std::vector<std::uint64_t> removed;
    for (const StoredBundle& bundle : row.bundles)
      if (bundle.is_removed) removed.push_back(bundle.episode.created_s);
    CHECK(removed == row.removed);
  }
}

TEST_CASE("what is not shipped has a bound of its own") {
  std::vector<StoredBundle> bundles;
  for (std::uint64_t i = 1; i <= kMostSpooled + 3; ++i)
    bundles.push_back(unshipped(stored(i, i, 1)));
  select_removals(bundles, {5, 0});
  CHECK(std::count_if(bundles.begin(), bundles.end(),
                      [](const StoredBundle& bundle) { return bundle.is_removed; }) == 3);
  CHECK((bundles[0].is_removed && bundles[2].is_removed));
}

TEST_CASE("a directory keeps its newest bundles and foreign entries") {
  session::TrainingSession session;
  Scratch scratch;
  scratch.max_dumps = 2;
  std::filesystem::create_directories(scratch.dumps / "oom_cpu_20200101_000000_001");
  Cause cause = cause_of(Trigger::soft_limit);
  cause.failure = session.failure;
  std::string last;
  for (unsigned i = 0; i < 4; ++i) {
    cause.realtime_ns = (1795256102U + i) * std::uint64_t{1'000'000'000};
    cause.number = i + 1;
    last = scratch.write(session.view(), cause).filename();
  }
  CHECK(last == "oom_cpu_20261121_101505_001");
  CHECK(scratch.entries() == 3);
  CHECK(has(scratch, "20200101_000000"));
  CHECK(has(scratch, "20261121_101502"));  // its first
  CHECK(std::filesystem::exists(scratch.dumps / last));
}

TEST_CASE("a killed process' bundle outlives requested ones") {
  session::TrainingSession session;
  Scratch scratch;
  scratch.max_dumps = 2;
  Cause cause = cause_of(Trigger::killed);
  for (const Trigger trigger : {Trigger::killed, Trigger::request, Trigger::soft_limit}) {
    cause.trigger = trigger;
    cause.failure = trigger == Trigger::soft_limit ? session.failure : 0;
    ++cause.number;
    cause.realtime_ns = (1795256102U + cause.number) * 1'000'000'000;
    scratch.write(session.view(), cause);
  }
  CHECK(has(scratch, "20261121_101503"));
  CHECK_FALSE(has(scratch, "20261121_101504"));
  CHECK(has(scratch, "20261121_101505"));
}

TEST_CASE("a worker killed by its parent is removed before one that the kernel killed") {
  session::TrainingSession session;
  Scratch scratch;
  scratch.max_dumps = 2;
  session::EndEvidence kernel_end{}, parent_end{};
  session::Death &by_kernel = kernel_end.death, &by_parent = parent_end.death;
  by_kernel.realtime_ns = by_parent.realtime_ns = 1795256102'000'000'000U;
  by_kernel.flags = by_parent.flags = session::kDeathWaited;
  by_kernel.wait_status = 9;
  by_kernel.kernel_line_kind = static_cast<session::u32>(session::KernelLine::cgroup);
  by_parent.wait_status = 15;
  Cause cause = cause_of(Trigger::killed);
  for (const session::EndEvidence* const end : {&kernel_end, &parent_end, &parent_end}) {
    cause.end = end;
    ++cause.number;
    cause.realtime_ns = (1795256102U + cause.number) * 1'000'000'000;
    session.header().start_ticks += 1;  // another process
    scratch.write(session.view(), cause);
  }
  CHECK(has(scratch, "20261121_101503"));
  CHECK_FALSE(has(scratch, "20261121_101504"));
  CHECK(has(scratch, "20261121_101505"));
}

TEST_CASE("a name is used once, even after its bundle was removed") {
  session::TrainingSession session;
  Cause cause = cause_of(Trigger::request);
  cause.realtime_ns = 1795256102'000'000'000U;
  for (const std::uint64_t max_dumps : {1U, 2U}) {
    Scratch scratch;
    scratch.max_dumps = max_dumps;
    for (const char* name : {"001", "002", "003", "004", "005"}) {
      ++cause.number;
      CHECK(scratch.write(session.view(), cause).filename() ==
            std::string{"oom_cpu_20261121_101502_"} + name);
    }
  }
}

TEST_CASE("a number follows those of other backends and writers in the same second") {
  session::TrainingSession session;
  Scratch scratch;
  for (const char* name : {"oom_cuda_20261121_101502_007", ".oom_cpu_20261121_101502_008.partial",
                           "oom_cpu_20261121_101503_009", "oom_cpu_20261121_101502_010x"})
    std::filesystem::create_directories(scratch.dumps / name);
  Cause cause = cause_of(Trigger::request);
  cause.realtime_ns = 1795256102'000'000'000U;
  CHECK(scratch.write(session.view(), cause).filename() == "oom_cpu_20261121_101502_009");
}

TEST_CASE("what dead writers left is removed when it is old") {
  session::TrainingSession session;
  Scratch scratch;
  const auto old = scratch.dumps / ".oom_cpu_20200101_000000_001.partial";
  const auto fresh = scratch.dumps / ".oom_cpu_20200101_000000_002.partial";
  for (const auto& path : {old, fresh}) {
    std::filesystem::create_directories(path);
    std::ofstream{path / "events.json"} << "[";
  }
  make_older(old, std::chrono::hours(1));
  scratch.write(session.view(), cause_of(Trigger::request));
  CHECK_FALSE(std::filesystem::exists(old));
  CHECK(std::filesystem::exists(fresh));
}

TEST_CASE("what a dead writer left is removed sooner where its writer is known to be dead") {
  session::TrainingSession session;
  Scratch scratch;
  const auto dead = scratch.dumps / ".oom_cpu_20200101_000000_001.partial";
  const auto living = scratch.dumps / ".oom_cpu_20200101_000000_002.partial";
  for (const auto& path : {dead, living}) {
    std::filesystem::create_directories(path);
    make_older(path, std::chrono::minutes(1));
  }
  const int held = open(living.c_str(), O_RDONLY | O_DIRECTORY);
  REQUIRE(flock(held, LOCK_EX | LOCK_NB) == 0);
  Cause cause = cause_of(Trigger::request);
  scratch.write(session.view(), cause);
  CHECK_FALSE(std::filesystem::exists(dead));
  CHECK(std::filesystem::exists(living));
  close(held);
  scratch.write(session.view(), cause);
  CHECK_FALSE(std::filesystem::exists(living));
}

TEST_CASE("a writer holds the lock of its temporary directory") {
  Scratch scratch;
  std::filesystem::create_directories(scratch.dumps);
  const auto work = std::make_unique<Workspace>();
  const int dumps = open(scratch.dumps.c_str(), O_RDONLY | O_DIRECTORY);
  const int directory = claim_name(dumps, "cpu", 1795256102'000'000'000U, *work);
  REQUIRE(directory >= 0);
  const int other = openat(dumps, work->temporary, O_RDONLY | O_DIRECTORY);
  CHECK(flock(other, LOCK_EX | LOCK_NB) != 0);
  close(directory);  // as the kernel does at the writer's death
  CHECK(flock(other, LOCK_EX | LOCK_NB) == 0);
  close(other);
  close(dumps);
}

TEST_CASE("names of bundles") {
  CHECK(is_bundle_name("oom_cpu_20261121_101530_001"));
  CHECK(is_bundle_name("oom_cuda_20261121_101530_1000"));
  for (const char* name : {"oom_cpu_20261121_101530_01", "oom_20261121_101530_001", "oom_cpu",
                           "xoom_cpu_20261121_101530_001", "oom_cpu_20261121_101530_001x"})
    CHECK_FALSE(is_bundle_name(name));
}

TEST_CASE("patterns (%) in a dump directory's path") {
  struct {
    const char* pattern;
    const char* path;
  } const rows[] = {{"/d/%p", "/d/42"},
                    {"/d/%h-%e", "/d/node_7-train"},
                    {"/d/%t", "/d/20261121_101500"},
                    {"/d/100%%", "/d/100%"},
                    {"/d/%x%", "/d/%x%"}};
  for (const auto& row : rows) {
    char path[64];
    CHECK(text::expand_path(row.pattern, {42, "node/7", "/usr/bin/train", 1795256100'000'000'000U},
                            path, sizeof path));
    CHECK(std::string{path} == row.path);
  }
  char path[8];
  CHECK_FALSE(text::expand_path("/a/long/path", {}, path, sizeof path));
  CHECK(text::expand_path("/%e", {1, "", "..", 0}, path, sizeof path));
  CHECK(std::string{path} == "/__");
}
