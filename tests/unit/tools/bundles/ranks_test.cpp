// Ranks of a job: their identity, the first failure, and their combined recording.
#include <doctest/doctest.h>

#include "tests/unit/tools/recording_image.h"
#include "tools/base/error.h"
#include "tools/bundles/ranks/combined.h"
#include "tools/bundles/ranks/job_json.h"
#include "tools/recording/analysis/stacks.h"

using namespace oomrec;
using namespace oomrec::tools;
using session::TableId;

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kSecond = 1'000'000'000;

recording::Moment moment(std::uint64_t seconds, std::uint64_t heap_mib) {
  recording::Moment made;
  made.time_ns = seconds * kSecond;
  made.live_bytes[static_cast<std::size_t>(Space::heap)] = heap_mib * kMiB;
  return made;
}

// A recording of one rank with one stack.
struct RankImage : tests::RecordingImage {
  RankImage(std::uint32_t rank, std::uint32_t world_size) {
    session().header().rank = {1, rank, rank, world_size, 0, 0};
    session().header().pid = 1000 + static_cast<int>(rank);
    session().header().start_realtime_ns = 1'700'000'000 * kSecond;
    session().header().start_monotonic_ns = 50 * kSecond;
    session().header().last_tick_ns = 60 * kSecond;
    const std::uint32_t node =
        stack({python("/srv/train.py", "main", 3), python("/srv/train.py", "fill", 7)});
    holder(node, Space::heap, (rank + 1) * kMiB, (rank + 2) * kMiB, 9 * kMiB);
  }
  void mark(const char* text, std::uint64_t second) {
    const session::StringId id = session().add_string(kHook, text);
    std::uint32_t index = 0;
    REQUIRE(session().marks.append(kHook, index, [&](session::Mark& row) {
      row = {second * kSecond, id, 0};
    }));
  }
  void failure(std::uint64_t second, std::uint64_t bytes) {
    std::uint32_t index = 0;
    REQUIRE(session().failures.append(kHook, index, [&](session::Failure& row) {
      row.time_ns = second * kSecond;
      row.realtime_ns = session().header().start_realtime_ns + (second - 50) * kSecond;
      row.bytes = bytes;
      row.api = static_cast<std::uint16_t>(Api::malloc);
      row.error = 12;
      row.last_ns = row.time_ns;
    }));
  }
};

bundles::Job job_of_all(const std::vector<std::string>& paths, const std::string& mark = {}) {
  return bundles::job_of(paths, mark, nullptr);
}

}  // namespace

TEST_CASE("a group of launcher variables counts if it is complete and consistent") {
  const Json slurm = {{"RANK", "1"},
                      {"SLURM_PROCID", "2"},
                      {"SLURM_LOCALID", "0"},
                      {"SLURM_NTASKS", "3"},
                      {"SLURM_JOB_ID", "77"}};
  const auto identity = bundles::rank_in(slurm);
  REQUIRE(identity);
  CHECK(identity->rank == 2);
  CHECK(identity->local_rank == 0);
  CHECK(identity->world_size == 3);
  CHECK(identity->job == "77");
  const auto without_local = bundles::rank_in({{"RANK", "1"}, {"WORLD_SIZE", "4"}});
  REQUIRE(without_local);
  CHECK(without_local->rank == 1);
  CHECK(without_local->local_rank == 1);
  for (const char* rank : {"4", "-1", "1x", ""}) {
    CAPTURE(rank);
    CHECK(!bundles::rank_in({{"RANK", rank}, {"LOCAL_RANK", "0"}, {"WORLD_SIZE", "4"}}));
  }
}

TEST_CASE("growth counts from the last decrease, and must be a tenth of the peak") {
  const std::vector<recording::Moment> moments = {moment(1, 100), moment(2, 150), moment(3, 90),
                                                  moment(4, 120), moment(5, 154), moment(6, 300)};
  const auto grown = bundles::first_growth(moments, 300 * kMiB);
  REQUIRE(grown);
  CHECK(grown->time_ns == 5 * kSecond);
  CHECK(grown->bytes == 64 * kMiB);
  CHECK(bundles::first_growth(moments, 2000 * kMiB)->time_ns == 6 * kSecond);
  CHECK(!bundles::first_growth(moments, 4000 * kMiB));
  CHECK(!bundles::first_growth({}, 0));
}

TEST_CASE("the recordings of two ranks combine, distinguished by the outermost frame") {
  RankImage zero{0, 3}, two{2, 3};
  two.failure(55, 64 * kMiB);
  const bundles::Job job = job_of_all({two.path(), zero.path()});

  REQUIRE(job.ranks.size() == 2);
  CHECK(job.missing == std::vector<std::uint32_t>{1});
  REQUIRE(job.first);
  CHECK(job.ranks[*job.first].identity.rank == 2);
  const bundles::CombinedRecording combined = bundles::combined_recording(job);
  const recording::Recording recording{"job", combined.bytes, combined.count};
  CHECK(combined.failure == 1);
  session::Failure failure{};
  REQUIRE(recording.view().read(TableId::failures, 1, failure));
  CHECK(recording.realtime_of(failure.time_ns) == 1'700'000'005 * kSecond);

  recording::Locations locations{recording, recording::StoredSymbols{}};
  recording::Stacks stacks{recording, locations};
  const std::vector<recording::StackFigures> rows =
      recording::merged(recording.holders(), stacks, recording::At::end);
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].bytes == 3 * kMiB);
  const std::vector<recording::LocationId> stack = stacks.locations(rows[0].stack);
  REQUIRE(stack.size() == 3);
  CHECK(locations[stack[0]].function == "fill");
  CHECK(locations[stack[2]].function == "[rank 2]");
  CHECK(recording::merged(recording.holders(), stacks, recording::At::peak)[0].bytes == 4 * kMiB);
  // Names that both ranks have are stored once.
  CHECK(recording.view().count(TableId::codes) == 3);
}

TEST_CASE("a mark of every rank aligns their clocks, and the error names a rank without it") {
  RankImage zero{0, 2}, one{1, 2};
  zero.mark("step 0", 52);
  one.mark("step 0", 57);
  one.mark("only here", 58);
  const bundles::Job job = job_of_all({zero.path(), one.path()}, "step 0");
  CHECK(job.ranks[0].shift_ns == 0);
  CHECK(job.ranks[1].shift_ns == -5 * static_cast<std::int64_t>(kSecond));
  CHECK(job.ranks[1].realtime_of(57 * kSecond) == job.ranks[0].realtime_of(52 * kSecond));
  CHECK(bundles::job_json(job, [](const bundles::JobRank&) {
          return std::string{};
        })["clock"]["mark"] == "step 0");
  CHECK_THROWS_WITH_AS(job_of_all({zero.path(), one.path()}, "only here"),
                       "rank 0 made no mark 'only here'", Error);
}

TEST_CASE("recordings without a rank are numbered in the order of the arguments") {
  tests::RecordingImage a, b;
  a.session().header().pid = 1000;
  b.session().header().pid = 1001;
  const bundles::Job job = job_of_all({a.path(), b.path()});
  CHECK(job.numbered);
  REQUIRE(job.ranks.size() == 2);
  CHECK(job.ranks[1].source.recording->header().pid == 1001);
}
