#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "common/bundle/process_group.h"

using namespace oomrec;
using namespace oomrec::bundle;

namespace {

Kin kin(std::int32_t pid, std::int32_t parent, std::uint64_t start) {
  Kin made{};
  made.pid = pid;
  made.parent_pid = parent;
  made.start_ticks = start;
  return made;
}

// "11 parent, 12 child", by pid; whoever is not of the group is left out.
std::string relations(std::vector<Kin> all) {
  relate(all);
  std::sort(all.begin(), all.end(), [](const Kin& a, const Kin& b) {
    return a.pid != b.pid ? a.pid < b.pid : a.start_ticks < b.start_ticks;
  });
  std::string text;
  for (const Kin& one : all) {
    if (one.relation == Relation::none) continue;
    if (!text.empty()) text += ", ";
    text += std::to_string(one.pid) + ' ' + std::string{name_of(one.relation)};
  }
  return text;
}

}  // namespace

TEST_CASE("a group is all that a common ancestor started") {
  const std::vector<Kin> all = {
      kin(50, 40, 5), kin(10, 1, 1),  kin(20, 10, 2), kin(40, 20, 4),
      kin(60, 50, 6), kin(70, 60, 7), kin(80, 70, 8), kin(41, 20, 5),
      kin(42, 41, 6), kin(99, 98, 3), kin(97, 99, 4),
  };
  const std::string expected =
      "10 ancestor, 20 ancestor, 40 parent, 41 relative, 42 relative, 50 self, 60 child, "
      "70 descendant, 80 descendant";
  CHECK(relations(all) == expected);

  // Whatever order the directory has them in.
  std::minstd_rand random{7};
  std::vector<Kin> shuffled = all;
  for (int round = 0; round < 20; ++round) {
    std::shuffle(shuffled.begin() + 1, shuffled.end(), random);
    CHECK(relations(shuffled) == expected);
  }
}

TEST_CASE("of the processes that had a pid in turn, the parent is the last before the child") {
  const Kin child = kin(50, 40, 50);
  const Kin before = kin(40, 1, 10), parent = kin(40, 2, 20), after = kin(40, 3, 60);
  const std::vector<Kin> roots = {kin(1, 0, 1), kin(2, 0, 2), kin(3, 0, 3)};
  std::vector<Kin> all = {child, after, before, parent};
  all.insert(all.end(), roots.begin(), roots.end());
  CHECK(relations(all) == "2 ancestor, 40 parent, 50 self");
}

TEST_CASE("a process alone, and pids that lead in a circle") {
  CHECK(relations({kin(50, 40, 5)}) == "50 self");
  CHECK(relations({kin(50, 50, 5)}) == "50 self");
  CHECK(relations({kin(50, 40, 5), kin(40, 50, 5)}) == "40 parent, 50 self");
  CHECK(relations({kin(50, 1, 5), kin(40, 41, 5), kin(41, 40, 5)}) == "50 self");
}
