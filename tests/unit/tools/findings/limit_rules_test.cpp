// The limit to raise: each verdict about memory gets an action that fits, and no other verdict
// does.
#include <doctest/doctest.h>

#include "common/verdict/kinds.h"
#include "tools/findings/advice/heap_limit.h"

using namespace oomrec;
using namespace oomrec::tools;

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

findings::AdviceFacts facts_of(VerdictCode verdict, LimitKind kind = LimitKind::none,
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
    CHECK_MESSAGE(!findings::advice_of(facts_of(code)).empty() == about_memory, kVerdictNames[i]);
  }
}

TEST_CASE("a refused request: the value is what it held and asked for, plus a quarter") {
  auto soft = facts_of(VerdictCode::soft_limit, LimitKind::soft, 512 * kMiB, 480 * kMiB);
  soft.request_bytes = 32 * kMiB + 1;
  CHECK(contains(
      text_of(soft),
      "It needed at least 512.0 MiB at once. If it is meant to hold that much: set --limit 704M."));
  auto space = facts_of(VerdictCode::address_space_limit, LimitKind::rlimit_as, kGiB, kGiB - 1);
  space.request_bytes = kGiB;
  CHECK(contains(text_of(space), "--limit-as 2560M (ulimit -v 2621440)"));
}

TEST_CASE("a kill at a limit does not show what the process needs") {
  const auto kill = facts_of(VerdictCode::cgroup_oom_kill, LimitKind::cgroup, 64 * kMiB, 63 * kMiB);
  CHECK(contains(text_of(kill), "how much it needs is not known: give the cgroup 96M"));
  const auto near = facts_of(VerdictCode::near_limit, LimitKind::cgroup, 64 * kMiB, 62 * kMiB);
  CHECK(contains(text_of(near), "It is near its limit of 64.0 MiB"));
  // Unless its peak was seen, as after a limit that was lowered.
  auto seen = kill;
  seen.limit.peak_bytes = 400 * kMiB;
  CHECK(contains(text_of(seen),
                 "It needed at least 400.0 MiB at once. If it is meant to hold that much: give the "
                 "cgroup 512M"));
}

TEST_CASE("a program that needs more than the machine has") {
  auto large = facts_of(VerdictCode::soft_limit, LimitKind::soft, 15 * kGiB, 15 * kGiB);
  large.request_bytes = 4 * kGiB;
  CHECK(text_of(large) ==
        "This machine is too small for it: it has 16.0 GiB of RAM, and the program needs about "
        "24.0 GiB. Use a larger one, or let it hold less at a time.");
  auto request = facts_of(VerdictCode::request_too_large);
  request.request_bytes = 100 * kGiB;
  CHECK(contains(text_of(request), "the program needs about 128.0 GiB, if the size is meant"));
  request.request_bytes = kGiB << 20;
  CHECK(text_of(request) ==
        "No machine can serve 1.0 PiB at once: check where the size comes from.");
  request.request_bytes = 100 * kGiB;
  request.limit.ram_bytes = 0;  // unknown
  CHECK(!text_of(request).empty());
}

TEST_CASE("a limit on a number of things is doubled, not rounded to megabytes") {
  const auto maps = facts_of(VerdictCode::mapping_failed, LimitKind::max_map_count, 65'530, 65'532);
  CHECK(contains(text_of(maps), "sysctl vm.max_map_count=131064"));
}

TEST_CASE("growth and other processes are said beside the value") {
  auto kill = facts_of(VerdictCode::cgroup_oom_kill, LimitKind::cgroup, kGiB, kGiB);
  CHECK(!contains(text_of(kill), "grew"));
  CHECK(!contains(text_of(kill), "Other processes"));
  findings::Growth& growth = kill.held.emplace_back().growth.emplace();
  growth = {.bytes = 4.0 * kMiB, .bytes_per_second = 2.0 * kMiB, .window_seconds = 2};
  kill.limit.other_bytes = 700 * kMiB;
  CHECK(contains(text_of(kill), "and it grew by 4.0 MiB in 2.0 s: if that goes on"));
  growth.window_seconds = 60;
  CHECK(contains(text_of(kill),
                 "is not known, and it grew by 120.0 MiB a minute: if that goes on, a higher limit "
                 "only delays the end. To gain time: give the cgroup 1536M"));
  CHECK(contains(text_of(kill), "Other processes held 700.0 MiB of the cgroup's memory"));
}

TEST_CASE("a runtime's own limit is raised by its own option") {
  auto node = facts_of(VerdictCode::runtime_limit);
  node.limit.program = "node";
  node.limit.peak_bytes = 100 * kMiB;
  CHECK(contains(text_of(node), "--max-old-space-size=128"));
  node.limit.program = "lua5.4";
  CHECK(contains(text_of(node), "its documentation names the option"));
}

TEST_CASE("the heap limit that the command line sets") {
  const auto limit = [](std::string_view program, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), std::string{program});
    return findings::heap_limit_of(program, arguments);
  };
  CHECK(limit("java", {"-cp", "a.jar", "-Xmx512m", "Main"}).bytes == 512 * kMiB);
  CHECK(limit("java", {"-Xmx1g", "-XX:MaxHeapSize=2G", "Main"}).option == "-XX:MaxHeapSize=2G");
  CHECK(limit("java", {"-Xmx1048576", "Main"}).bytes == kMiB);
  CHECK(limit("node", {"--max-old-space-size=40", "a.js"}).bytes == 40 * kMiB);
  CHECK(limit("node", {"--max_old_space_size=40", "-e", "1"}).bytes == 40 * kMiB);
  CHECK(limit("php", {"-n", "-d", "memory_limit=8M", "a.php"}).bytes == 8 * kMiB);
  CHECK(limit("java", {"-XX:MaxRAMPercentage=75", "Main"}).option == "-XX:MaxRAMPercentage=75");
  CHECK(limit("java", {"-XX:MaxRAMPercentage=75", "Main"}).bytes == 0);  // of an unknown size
  CHECK(limit("java", {"-XX:MaxRAM5", "Main"}).bytes == 0);              // no such option
  CHECK(limit("node", {"--max-old-space-size", "40", "a.js"}).bytes == 0);
  CHECK(limit("node", {"--max-old-space-size", "40", "a.js"}).option == "--max-old-space-size");
  CHECK(limit("java", {"Main", "-Xmx512m"}).option.empty());  // the program's own argument
  CHECK(limit("node", {"a.js", "--max-old-space-size=40"}).option.empty());
  CHECK(limit("node", {"-Xmx512m", "a.js"}).option.empty());
  for (const char* value : {"-Xmx", "-Xmxlots", "-Xmx5x", "-Xmx5mm", "-Xmx99999999999t"})
    CHECK_MESSAGE(limit("java", {value}).bytes == 0, value);
  CHECK(findings::php_limit_in(
            "PHP's last error: Allowed memory size of 8388608 bytes exhausted") == 8 * kMiB);
  CHECK(findings::php_limit_in("Allowed to fail") == 0);
}

TEST_CASE("a runtime's limit: the value it has, and one that fits into its cgroup") {
  auto java = facts_of(VerdictCode::runtime_limit);
  java.limit.program = "java";
  java.limit.peak_bytes = 600 * kMiB;
  java.limit.heap = {"-Xmx512m", 512 * kMiB};
  CHECK(contains(text_of(java), "(512.0 MiB, set by -Xmx512m) was reached"));
  CHECK(contains(text_of(java), "try -Xmx768m."));
  java.limit.cgroup_bytes = 4 * kGiB;
  CHECK(contains(text_of(java), "try -Xmx768m."));
  java.limit.cgroup_bytes = 800 * kMiB;
  CHECK(contains(text_of(java),
                 "try -Xmx600m, the most that leaves a quarter of its cgroup's 800.0 MiB"));
  java.limit.cgroup_bytes = 600 * kMiB;  // three quarters of it are less than the heap has
  CHECK(contains(text_of(java), "raise both, to -Xmx768m and to 1G for the cgroup"));
}

TEST_CASE("a cgroup's limit that a runtime's heap may exceed") {
  auto kill = facts_of(VerdictCode::cgroup_oom_kill, LimitKind::cgroup, 512 * kMiB, 511 * kMiB);
  CHECK(!contains(text_of(kill), "heap"));  // no such runtime
  kill.limit.program = "java";
  CHECK(contains(text_of(kill), "Its command line sets no limit for the JVM's heap"));
  CHECK(contains(text_of(kill), "at most -Xmx384m in a cgroup of 512.0 MiB"));
  kill.limit.heap = {"-Xmx2g", 2 * kGiB};
  CHECK(contains(text_of(kill), "-Xmx2g lets the heap alone grow beyond the cgroup's 512.0 MiB"));
  kill.limit.heap = {"-Xmx480m", 480 * kMiB};
  CHECK(contains(text_of(kill), "-Xmx480m leaves only 32.0 MiB of the cgroup's 512.0 MiB"));
  kill.limit.heap = {"-Xmx128m", 128 * kMiB};
  CHECK(contains(text_of(kill), "-Xmx128m leaves 384.0 MiB of the cgroup's 512.0 MiB"));
  kill.limit.program = "php8.2";  // each of its processes has a limit of its own
  kill.limit.heap = {};
  CHECK(!contains(text_of(kill), "heap"));
  kill.limit.program = "java";
  kill.limit.heap = {"-Xmxlots", 0};
  CHECK(!contains(text_of(kill), "heap"));
  kill.limit.heap = {};
  kill.limit.kind = LimitKind::rlimit_as;
  kill.verdict = VerdictCode::address_space_limit;
  CHECK(!contains(text_of(kill), "heap"));
}

TEST_CASE("a full tmpfs: the value is its size and what was missing") {
  auto shared = facts_of(VerdictCode::shared_memory_full);
  shared.limit.shared_total_bytes = 64 * kMiB;
  shared.limit.shared_needed_bytes = 80 * kMiB;
  const auto hint = findings::enlarge_shared_memory(shared);
  REQUIRE(hint);
  CHECK(contains(hint->text, "--shm-size=192M"));
  CHECK(!findings::enlarge_shared_memory(facts_of(VerdictCode::crashed)));
}
