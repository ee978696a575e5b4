// What a process has from its environment, and remembers of others that ended.
#include "recorder/process/job.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "recorder/process/ended_processes.h"
#include "tests/unit/recorder/running.h"

using namespace oomrec::recorder;
using namespace oomrec::running;
using namespace oomrec;
using oomrec::recorder::RankFacts;
using oomrec::recorder::read_rank;
using session::EndedChild;
using session::g_session;
using session::Header;
using session::kEndedChildren;
using session::SentSignal;

// --- A process' rank, from its environment

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

// --- The labels of a process, from its environment

namespace {

// With "|" for NUL.
std::string labels_of(const std::vector<std::string>& environment) {
  std::vector<const char*> entries;
  for (const std::string& entry : environment) entries.push_back(entry.c_str());
  entries.push_back(nullptr);
  static char buffer[kProcessLabelsBytes];
  std::string labels{read_process_labels(entries.data(), buffer)};
  for (char& c : labels)
    if (c == '\0') c = '|';
  return labels;
}

}  // namespace

TEST_CASE("OpenTelemetry's names, the user's, the launchers', in this order") {
  CHECK(labels_of({"OOMREC_LABELS=team=ml, release = 7", "SLURM_RESTART_COUNT=2", "HOME=/root",
                   "OTEL_RESOURCE_ATTRIBUTES=service.version=1.8,k8s.pod.name=web-0",
                   "OTEL_SERVICE_NAME=shop"}) ==
        "service.name=shop|service.version=1.8|k8s.pod.name=web-0|team=ml|release=7|attempt=2");
  CHECK(labels_of({}).empty());
}

TEST_CASE("attributes that could hold anything are left out") {
  CHECK(labels_of({"OTEL_RESOURCE_ATTRIBUTES=api.key=hunter2,container.command_args=--token x,"
                   "k8s.pod.annotation.owner=me,enduser.id=7,host.name=n1"}) == "host.name=n1");
}

TEST_CASE("secrets among the user's labels are masked") {
  const std::string labels = labels_of({"OOMREC_LABELS=team=ml,password=hunter2"});
  CHECK(labels.find("hunter2") == labels.npos);
  CHECK(labels.starts_with("team=ml|password="));
}

TEST_CASE("what is no label, or too long, is left out") {
  const std::string longest(5000, 'x');
  CHECK(labels_of({"OOMREC_LABELS=,=,a,=b,c=,,d=e,f=" + longest}) == "d=e");
  std::string many = "OOMREC_LABELS=";
  for (int i = 0; i < 2000; ++i) many += "k" + std::to_string(i) + "=v,";
  const std::string labels = labels_of({many});
  CHECK(labels.size() < kProcessLabelsBytes);
  CHECK(labels.ends_with("=v"));
}

// --- What a process remembers of children ended by a signal

namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

std::vector<int> pids_in(const Header& header) {
  std::vector<int> pids;
  for (const EndedChild& child : header.ended)
    if (child.time_ns != 0) pids.push_back(child.pid);
  return pids;
}

}  // namespace

TEST_CASE("a child is kept with its status if a memory-related signal ended it") {
  const auto header = std::make_unique<Header>();
  record_ended_child(*header, 101, W_EXITCODE(1, 0), 5 * kSecond);
  record_ended_child(*header, 102, SIGPIPE, 5 * kSecond);
  CHECK(pids_in(*header).empty());
  record_ended_child(*header, 103, SIGKILL, 6 * kSecond);
  record_ended_child(*header, 104, SIGABRT | WCOREFLAG, 7 * kSecond);
  REQUIRE(pids_in(*header) == std::vector{103, 104});
  CHECK(header->ended[0].wait_status == SIGKILL);
  CHECK(header->ended[0].time_ns == 6 * kSecond);
  CHECK(header->ended[1].wait_status == (SIGABRT | WCOREFLAG));
}

TEST_CASE("children that a parent ends after losing one do not replace it") {
  const auto header = std::make_unique<Header>();
  record_ended_child(*header, 101, SIGKILL, kSecond);
  for (unsigned i = 0; i < 2 * kEndedChildren; ++i)
    record_ended_child(*header, 200 + static_cast<int>(i), SIGTERM, 2 * kSecond);
  CHECK(pids_in(*header).size() == kEndedChildren);
  CHECK(pids_in(*header).front() == 101);
  SUBCASE("later deaths replace it") {
    for (unsigned i = 0; i < kEndedChildren; ++i)
      record_ended_child(*header, 300 + static_cast<int>(i), SIGKILL, 13 * kSecond);
    for (const int pid : pids_in(*header)) CHECK(pid >= 300);
  }
}

TEST_CASE("a child's end counts as a cause for ten seconds") {
  const auto header = std::make_unique<Header>();
  CHECK_FALSE(lost_child_recently(*header, kSecond));
  record_ended_child(*header, 101, SIGKILL, 20 * kSecond);
  CHECK(lost_child_recently(*header, 30 * kSecond));
  CHECK_FALSE(lost_child_recently(*header, 31 * kSecond));
}

// --- What a process remembers of the signals by which it ends others

TEST_CASE("only a signal that may end one other process is of interest") {
  for (const int signal : {SIGTERM, SIGKILL}) CHECK(recorder::may_end_another(4711, signal));
  for (const int signal : {0, SIGINT, SIGUSR1, SIGSTOP})
    CHECK_FALSE(recorder::may_end_another(4711, signal));
  for (const int group : {0, -1, -4711}) CHECK_FALSE(recorder::may_end_another(group, SIGTERM));
  CHECK_FALSE(recorder::may_end_another(getpid(), SIGTERM));
}

TEST_CASE("a signal is recorded with its sender's stack and the other's memory") {
  need(Mode::sampled);
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  CHECK(recorder::resident_bytes_of(kHook, child) > 100'000);
  const std::uint64_t resident = 123'456;  // not its own, which is large under a sanitizer
  const std::uint32_t entry = g_session.sent_signals.size();
  doubles::t_stack = 4321;
  const std::uint64_t before_ns = system::monotonic_ns();
  recorder::on_signal_sent(kHook, child, SIGTERM, resident);
  REQUIRE(g_session.sent_signals.size() == entry + 1);
  const SentSignal& sent = g_session.sent_signals.at(entry);
  CHECK(sent.pid == child);
  CHECK(sent.signal == SIGTERM);
  CHECK(sent.resident_bytes == resident);
  CHECK(sent.time_ns >= before_ns);
  CHECK(session::offset_of(g_session.node(sent.node).frame) == 4321);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  CHECK(recorder::resident_bytes_of(kHook, child) == 0);
}

TEST_CASE("a session is worth keeping if it explains the end of a large process") {
  need(Mode::sampled);
  CHECK_FALSE(recorder::has_ended_a_large_process(kHook));
  recorder::on_signal_sent(kHook, 4711, SIGTERM, 16 * kMiB - 1);
  CHECK_FALSE(recorder::has_ended_a_large_process(kHook));
  recorder::on_signal_sent(kHook, 4712, SIGTERM, 16 * kMiB);
  recorder::on_signal_sent(kHook, 4713, SIGTERM, 0);
  CHECK(recorder::has_ended_a_large_process(kHook));
}

TEST_CASE("the latest stay") {
  need(Mode::sampled);
  constexpr std::uint32_t kSent = session::kSentSignals + 10;
  for (std::uint32_t i = 0; i < kSent; ++i)
    recorder::on_signal_sent(kHook, static_cast<int>(10'000 + i), SIGTERM, 0);
  CHECK(g_session.sent_signals.size() == session::kSentSignals + 1);
  std::uint32_t latest = 0;
  session::SentSignal sent{};
  for (std::uint32_t i = 1; g_session.view().read(session::TableId::sent_signals, i, sent); ++i)
    latest += sent.pid >= static_cast<int>(10'000 + 10);
  CHECK(latest >= session::kSentSignals - 10);  // a test before this one has sent some, too
}
