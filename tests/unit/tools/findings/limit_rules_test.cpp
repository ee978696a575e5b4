// The limit to raise: each verdict about memory gets an action that fits, and no other verdict
// does.
#include <doctest/doctest.h>

#include "common/verdict/kinds.h"
#include "tools/findings/advice/advice.h"

using namespace oomrec;
using namespace oomrec::tools;

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

findings::AdviceFacts facts(VerdictCode verdict, LimitKind kind = LimitKind::none,
                            std::uint64_t limit = 0, std::uint64_t used = 0) {
  findings::AdviceFacts facts;
  facts.verdict = verdict;
  facts.limit.kind = kind;
  facts.limit.limit = limit;
  facts.limit.used = used;
  facts.limit.ram_bytes = 16 * kGiB;
  return facts;
}

std::string text_of(const findings::AdviceFacts& facts) {
  const auto hint = findings::raise_limit(facts);
  return hint ? hint->text : "";
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("every verdict about memory gets at least one action, and no other does") {
  for (std::size_t i = 0; i < kVerdictNames.size(); ++i) {
    const auto code = static_cast<VerdictCode>(i);
    const bool about_memory =
        (verdict::is_death_related_to_memory(code) && code != VerdictCode::simulated) ||
        code == VerdictCode::near_limit || code == VerdictCode::memory_pressure ||
        code == VerdictCode::thread_creation_failed || code == VerdictCode::fork_failed;
    CHECK_MESSAGE(!findings::advice_of(facts(code)).empty() == about_memory, kVerdictNames[i]);
  }
}

TEST_CASE("a refused request: the value is what it held and asked for, plus a quarter") {
  auto soft = facts(VerdictCode::soft_limit, LimitKind::soft, 512 * kMiB, 480 * kMiB);
  soft.request_bytes = 32 * kMiB + 1;
  CHECK(contains(text_of(soft), "It needed at least 512.0 MiB at once: set --limit 704M."));
  auto space = facts(VerdictCode::address_space_limit, LimitKind::rlimit_as, kGiB, kGiB - 1);
  space.request_bytes = kGiB;
  CHECK(contains(text_of(space), "--limit-as 2560M (ulimit -v 2621440)"));
}

TEST_CASE("a kill at a limit does not show what the process needs") {
  const auto kill = facts(VerdictCode::cgroup_oom_kill, LimitKind::cgroup, 64 * kMiB, 63 * kMiB);
  CHECK(contains(text_of(kill), "how much it needs is not known: give the cgroup 96M"));
  const auto near = facts(VerdictCode::near_limit, LimitKind::cgroup, 64 * kMiB, 62 * kMiB);
  CHECK(contains(text_of(near), "It is near its limit of 64.0 MiB"));
  // Unless its peak was seen, as after a limit that was lowered.
  auto seen = kill;
  seen.limit.peak_bytes = 400 * kMiB;
  CHECK(contains(text_of(seen), "It needed at least 400.0 MiB at once: give the cgroup 512M"));
}

TEST_CASE("a program that needs more than the machine has") {
  auto large = facts(VerdictCode::soft_limit, LimitKind::soft, 15 * kGiB, 15 * kGiB);
  large.request_bytes = 4 * kGiB;
  CHECK(text_of(large) ==
        "This machine is too small for it: it has 16.0 GiB of RAM, and the program needs about "
        "24.0 GiB. Use a larger one, or let it hold less at a time.");
  auto request = facts(VerdictCode::request_too_large);
  request.request_bytes = 100 * kGiB;
  CHECK(contains(text_of(request), "the program needs about 128.0 GiB, if the size is meant"));
  request.limit.ram_bytes = 0;  // unknown
  CHECK(!text_of(request).empty());
}

TEST_CASE("a limit on a number of things is doubled, not rounded to megabytes") {
  const auto maps = facts(VerdictCode::mapping_failed, LimitKind::max_map_count, 65'530, 65'532);
  CHECK(contains(text_of(maps), "sysctl vm.max_map_count=131064"));
}

TEST_CASE("growth and other processes are said beside the value") {
  auto kill = facts(VerdictCode::cgroup_oom_kill, LimitKind::cgroup, kGiB, kGiB);
  CHECK(!contains(text_of(kill), "grew"));
  CHECK(!contains(text_of(kill), "Other processes"));
  kill.held.emplace_back().growth.emplace().bytes_per_second = 2.0 * kMiB;
  kill.limit.other_bytes = 700 * kMiB;
  CHECK(contains(text_of(kill), "It grew by 120.0 MiB a minute"));
  CHECK(contains(text_of(kill), "Other processes held 700.0 MiB of the cgroup's memory"));
}

TEST_CASE("a runtime's own limit is raised by its own option") {
  auto node = facts(VerdictCode::runtime_limit);
  node.limit.program = "node";
  node.limit.peak_bytes = 100 * kMiB;
  CHECK(contains(text_of(node), "--max-old-space-size=128"));
  node.limit.program = "lua5.4";
  CHECK(contains(text_of(node), "its documentation names the option"));
}

TEST_CASE("a full tmpfs: the value is its size and what was missing") {
  auto shared = facts(VerdictCode::shared_memory_full);
  shared.limit.shared_total_bytes = 64 * kMiB;
  shared.limit.shared_needed_bytes = 80 * kMiB;
  const auto hint = findings::enlarge_shared_memory(shared);
  REQUIRE(hint);
  CHECK(contains(hint->text, "--shm-size=192M"));
  CHECK(!findings::enlarge_shared_memory(facts(VerdictCode::crashed)));
}
