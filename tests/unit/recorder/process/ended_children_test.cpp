// What a process remembers of children ended by a signal.
#include "recorder/process/ended_processes.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>

#include <memory>
#include <vector>

using namespace oomrec;
using namespace oomrec::recorder;
using session::EndedChild;
using session::Header;
using session::kEndedChildren;

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
