// A process' rank, from its environment.
#include "recorder/process/job.h"

#include <doctest/doctest.h>

#include <initializer_list>
#include <vector>

using oomrec::recorder::RankFacts;
using oomrec::recorder::read_rank;

namespace {

RankFacts rank_of(std::initializer_list<const char*> environment) {
  std::vector<const char*> entries{environment};
  entries.push_back(nullptr);
  return read_rank(entries.data());
}

void check(const RankFacts& facts, std::uint32_t rank, std::uint32_t local, std::uint32_t world) {
  CHECK(facts.known);
  CHECK(facts.rank == rank);
  CHECK(facts.local_rank == local);
  CHECK(facts.world_size == world);
}

}  // namespace

TEST_CASE("the launchers' variables, in their order") {
  check(rank_of({"RANK=3", "LOCAL_RANK=1", "WORLD_SIZE=4"}), 3, 1, 4);
  check(
      rank_of({"OMPI_COMM_WORLD_RANK=2", "OMPI_COMM_WORLD_LOCAL_RANK=0", "OMPI_COMM_WORLD_SIZE=8"}),
      2, 0, 8);
  check(rank_of({"SLURM_PROCID=63", "SLURM_LOCALID=7", "SLURM_NTASKS=64"}), 63, 7, 64);
  check(rank_of({"SLURM_PROCID=0", "SLURM_LOCALID=0", "SLURM_NTASKS=1", "RANK=3", "LOCAL_RANK=1",
                 "WORLD_SIZE=4"}),
        3, 1, 4);
  check(rank_of({"RANK=3", "WORLD_SIZE=4"}), 3, 3, 4);
}

TEST_CASE("an incomplete or inconsistent set of variables is skipped as a whole") {
  CHECK_FALSE(rank_of({}).known);
  CHECK_FALSE(rank_of({"RANK=3", "LOCAL_RANK=3"}).known);
  for (const char* const rank : {"RANK=4", "RANK=-1", "RANK=", "RANK=1x", "RANK= 1", "RANK=1.0",
                                 "RANK=4294967296", "RANK=99999999999999999999"}) {
    CAPTURE(rank);
    CHECK_FALSE(rank_of({rank, "LOCAL_RANK=0", "WORLD_SIZE=4"}).known);
    check(rank_of({rank, "LOCAL_RANK=0", "WORLD_SIZE=4", "SLURM_PROCID=1", "SLURM_LOCALID=1",
                   "SLURM_NTASKS=2"}),
          1, 1, 2);
  }
  CHECK_FALSE(rank_of({"RANK=0", "LOCAL_RANK=4", "WORLD_SIZE=4"}).known);
  CHECK_FALSE(rank_of({"RANK=0", "LOCAL_RANK=0", "WORLD_SIZE=0"}).known);
}

TEST_CASE("a job is known without a rank, and its launcher's name comes first") {
  const RankFacts alone = rank_of({"SLURM_JOB_ID=4711"});
  CHECK_FALSE(alone.known);
  CHECK(alone.job == "4711");
  CHECK(rank_of({"SLURM_JOB_ID=4711", "TORCHELASTIC_RUN_ID=job-a"}).job == "job-a");
  CHECK(rank_of({"RANK=0", "LOCAL_RANK=0", "WORLD_SIZE=1"}).job.empty());
}
