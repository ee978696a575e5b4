// The decoder of aarch64's linkage tables, which runs on every machine. The code is what GNU
// ld 2.40 writes.
#include "common/machine/aarch64/linkage_table.h"

#include <vector>

#include <doctest/doctest.h>

namespace oomrec::machine {
namespace {

constexpr CodeWord kNop = 0xd503201f, kLanding = 0xd503245f, kAuthenticate = 0xd503219f,
                   kPush = 0xa9bf7bf0, kJump = 0xd61f0220;

// What each instruction of `code` has pushed; -1: not recognized.
std::vector<int> pushed_at_each(const std::vector<CodeWord>& code) {
  std::vector<int> found;
  for (std::size_t at = 0; at < code.size(); ++at)
    found.push_back(pushed_by_linkage(code, at).value_or(-1));
  return found;
}

TEST_CASE("the table of Debian 12's libm: the entry that binds, and two others") {
  const std::vector<CodeWord> code = {
      kPush,      0xf0000490, 0xf947fe11, 0x913fe210, kJump,      kNop,       kNop,       kNop,
      0x900004b0, 0xf9400211, 0x91000210, kJump,      0x900004b0, 0xf9400611, 0x91002210, kJump};
  CHECK(pushed_at_each(code) == std::vector{0, 16, 16, 16, 16, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0});
}

TEST_CASE("tables for branch targets and pointer authentication") {
  const std::vector<CodeWord> binds = {kLanding, kPush, 0xf00000f0, 0xf947fe11, 0x913fe210, kJump};
  CHECK(pushed_at_each(binds) == std::vector{0, 0, 16, 16, 16, 16});
  const std::vector<CodeWord> branch_target = {kLanding,   0xb00000f0, 0xf9400211,
                                               0x91000210, kJump,      kNop};
  CHECK(pushed_at_each(branch_target) == std::vector{0, 0, 0, 0, 0, -1});
  const std::vector<CodeWord> authenticated = {0x90000110,    0xf9400211, 0x91000210,
                                               kAuthenticate, kJump,      kNop};
  CHECK(pushed_at_each(authenticated) == std::vector{0, 0, 0, 0, 0, -1});
  const std::vector<CodeWord> both = {kLanding,   0xb00000f0,    0xf9400211,
                                      0x91000210, kAuthenticate, kJump};
  CHECK(pushed_at_each(both) == std::vector{0, 0, 0, 0, 0, 0});
}

TEST_CASE("other code is no entry") {
  // Another register, another order, an end too early.
  for (const std::vector<CodeWord>& code :
       {std::vector<CodeWord>{0x900004b1, 0xf9400211, 0x91000210, kJump},
        std::vector<CodeWord>{0x900004b0, 0xf9400231, 0x91000210, kJump},
        std::vector<CodeWord>{0x900004b0, 0x91000210, 0xf9400211, kJump},
        std::vector<CodeWord>{0x900004b0, 0xf9400211, 0x91000210, 0xd61f0200},
        std::vector<CodeWord>{0x900004b0, 0xf9400211, 0x91000210},
        std::vector<CodeWord>{kPush, kJump}, std::vector<CodeWord>{kNop}})
    CHECK(pushed_at_each(code) == std::vector(code.size(), -1));
}

}  // namespace
}  // namespace oomrec::machine
