#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "common/bundle/process_group.h"

using namespace oomrec;
using namespace oomrec::bundle;

namespace {

RecordedProcess recorded(std::int32_t pid, std::int32_t parent, std::uint64_t start) {
  RecordedProcess made{};
  made.pid = pid;
  made.parent_pid = parent;
  made.start_ticks = start;
  return made;
}

// "11 parent, 12 child", by pid; without processes outside the group.
std::string relations(std::vector<RecordedProcess> all) {
  set_relations(all);
  std::sort(all.begin(), all.end(), [](const RecordedProcess& a, const RecordedProcess& b) {
    return a.pid != b.pid ? a.pid < b.pid : a.start_ticks < b.start_ticks;
  });
  std::string text;
  for (const RecordedProcess& one : all) {
    if (one.relation == Relation::none) continue;
    if (!text.empty()) text += ", ";
    text += std::to_string(one.pid) + ' ' + std::string{name_of(one.relation)};
  }
  return text;
}

}  // namespace

TEST_CASE("a group is all descendants of a common ancestor") {
  const std::vector<RecordedProcess> all = {
      recorded(50, 40, 5), recorded(10, 1, 1),  recorded(20, 10, 2), recorded(40, 20, 4),
      recorded(60, 50, 6), recorded(70, 60, 7), recorded(80, 70, 8), recorded(41, 20, 5),
      recorded(42, 41, 6), recorded(99, 98, 3), recorded(97, 99, 4),
  };
  const std::string expected =
      "10 ancestor, 20 ancestor, 40 parent, 41 relative, 42 relative, 50 self, 60 child, "
      "70 descendant, 80 descendant";
  CHECK(relations(all) == expected);

  // The order of the directory does not matter.
  std::minstd_rand random{7};
  std::vector<RecordedProcess> shuffled = all;
  for (int round = 0; round < 20; ++round) {
    std::shuffle(shuffled.begin() + 1, shuffled.end(), random);
    CHECK(relations(shuffled) == expected);
  }
}

TEST_CASE("if a pid was reused, the parent is the last one started before the child") {
  const RecordedProcess child = recorded(50, 40, 50);
  const RecordedProcess before = recorded(40, 1, 10), parent = recorded(40, 2, 20),
                        after = recorded(40, 3, 60);
  const std::vector<RecordedProcess> roots = {recorded(1, 0, 1), recorded(2, 0, 2),
                                              recorded(3, 0, 3)};
  std::vector<RecordedProcess> all = {child, after, before, parent};
  all.insert(all.end(), roots.begin(), roots.end());
  CHECK(relations(all) == "2 ancestor, 40 parent, 50 self");
}

TEST_CASE("a single process, and pids that form a cycle") {
  CHECK(relations({recorded(50, 40, 5)}) == "50 self");
  CHECK(relations({recorded(50, 50, 5)}) == "50 self");
  CHECK(relations({recorded(50, 40, 5), recorded(40, 50, 5)}) == "40 parent, 50 self");
  CHECK(relations({recorded(50, 1, 5), recorded(40, 41, 5), recorded(41, 40, 5)}) == "50 self");
}
