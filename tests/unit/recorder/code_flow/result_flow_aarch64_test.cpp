// Functions in machine code of A64, as compilers make them: what they do with the result of the
// call before their first instruction.
#include "recorder/code_flow/result_flow.h"

#include <doctest/doctest.h>

#include <cstring>
#include <initializer_list>

#include "tests/unit/recorder/code_flow/program.h"

using namespace oomrec;
using namespace oomrec::code_flow;

namespace {

using Words = std::initializer_list<std::uint32_t>;

constexpr std::uint32_t kReturn = 0xd65f03c0;
constexpr std::uint32_t kCall = 0x94000008;  // far behind the code

std::vector<std::uint8_t> bytes_of(Words words) {
  std::vector<std::uint8_t> bytes;
  for (const std::uint32_t word : words)
    for (unsigned i = 0; i < 4; ++i) bytes.push_back(static_cast<std::uint8_t>(word >> (8 * i)));
  return bytes;
}

struct Program : CodeUnderTest {
  explicit Program(Words words, Words caller = {kReturn})
      : CodeUnderTest(bytes_of(words), bytes_of(caller)) {}

  // At the instruction of this number, or in the call before it.
  ResultFlow crash_at(std::size_t word, bool exact, std::uint64_t address = 0) {
    return CodeUnderTest::crash_at(4 * word, exact, address);
  }
};

}  // namespace

TEST_CASE("an address computed from the result, unoptimized and optimized") {
  // str x0, [sp, #24]; ldr x0, [sp, #24]; add x0, x0, #16; mov w1, #1; strb w1, [x0]
  Program slots{{0xf9000fe0, 0xf9400fe0, 0x91004000, 0x52800021, 0x39000001}};
  CHECK(slots.crash_at(4, true, 0x10).derived);
  CHECK_FALSE(slots.crash_at(4, true, 0x18).derived);  // not the address of the fault
  // mov x19, x0; bl …; strb w1, [x19, x1]
  Program registers{{0xaa0003f3, kCall, 0x38216a61}};
  CHECK(registers.crash_at(2, true, 0x5010).derived);
  // A call overwrites x0.
  Program lost{{kCall, 0x39000001}};
  CHECK_FALSE(lost.crash_at(1, true, 0).derived);
}

TEST_CASE("a place that only a failure leads to") {
  // cbnz x0, +8; bl …; then a common end: bl …; ret
  Program program{{0xb5000040, kCall, kCall, kReturn}};
  const ResultFlow inside = program.crash_at(2, false);
  CHECK(inside.checked);
  CHECK(inside.only_on_failure);
  CHECK_FALSE(inside.regardless);
  const ResultFlow after = program.crash_at(3, false);
  CHECK(after.checked);
  CHECK(after.regardless);
  CHECK_FALSE(after.only_on_failure);
  CHECK_FALSE(after.unchecked);
}

TEST_CASE("a call that aborts the program never returns, wherever it is made") {
  // cbz x0, +8; bl X; bl X; ret
  Program program{{0xb4000040, 0x94000008, 0x94000007, kReturn}};
  CHECK(program.crash_at(3, false).regardless);
  program.aborted = true;
  CHECK(program.crash_at(3, false).only_on_failure);
}

TEST_CASE("the way that takes no unknown turn is the one the program took") {
  // cbz x0, +16; cmp x2, x1; b.ne +4; bl X (never returns); bl Y; ret
  Program program{{0xb4000080, 0xeb01005f, 0x54000021, 0x94000008, kCall, kReturn}};
  CHECK(program.crash_at(5, false).only_on_failure);
  CHECK_FALSE(program.crash_at(5, false).regardless);
}

TEST_CASE("MAP_FAILED is compared with -1") {
  // cmn x0, #1; b.ne end; bl …; end: ret
  Program program{{0xb100041f, 0x54000041, kCall, kReturn}};
  program.failed = ~std::uint64_t{0};
  CHECK(program.crash_at(3, false).only_on_failure);
  program.failed = 0;
  CHECK_FALSE(program.crash_at(3, false).only_on_failure);
}

TEST_CASE("a negative result is found by its sign") {
  // tbz w0, #31, end; bl …; end: ret
  Program program{{0x36f80040, kCall, kReturn}};
  program.failed = ~std::uint64_t{0};
  CHECK(program.crash_at(2, false).only_on_failure);
  program.failed = 1;
  CHECK_FALSE(program.crash_at(2, false).only_on_failure);
}

TEST_CASE("a comparison that another one decides about") {
  // mov w1, #0; cmp x0, #0; ccmp x1, #0, #0, eq; b.ne end; bl …; end: ret
  Program both{{0x52800001, 0xf100001f, 0xfa400820, 0x54000041, kCall, kReturn}};
  CHECK(both.crash_at(5, false).only_on_failure);
  // mov w1, #0; cmp x0, #0; ccmp x1, #0, #4, ne; b.ne end: equal either way
  Program either{{0x52800001, 0xf100001f, 0xfa401824, 0x54000041, kCall, kReturn}};
  CHECK_FALSE(either.crash_at(5, false).only_on_failure);
  CHECK(either.crash_at(5, false).regardless);
}

TEST_CASE("an unchecked result that is kept") {
  for (const std::uint32_t store : {0xf9000660, 0xa9007e60}) {  // str x0, stp x0, xzr to [x19]
    Program stored{{store, kReturn}};
    stored.active = 2;  // both functions have returned
    CHECK(stored.crash_at(0, true).unchecked);
    CHECK(stored.crash_at(0, true).kept);
  }
  // cbz x0, +8; str x0, [x19, #8]; ret; caller: mov w0, #0; ret
  Program checked{{0xb4000040, 0xf9000660, kReturn}, {0x52800000, kReturn}};
  checked.active = 2;
  CHECK(checked.crash_at(0, true).checked);
  CHECK_FALSE(checked.crash_at(0, true).kept);
  // cmp x2, x1; b.eq: a comparison of something else may be one of the result
  Program unknown{{0xeb01005f, 0x54000020, 0xf9000660, kReturn}};
  unknown.active = 2;
  CHECK_FALSE(unknown.crash_at(0, true).unchecked);
  CHECK(unknown.crash_at(0, true).kept);
}

TEST_CASE("what a function returns is followed in its caller") {
  // cbnz x0, +12; mov w0, #-1; ret; mov w0, #0; ret
  // caller: tbz w0, #31, +8; bl …; bl …; ret
  Program program{{0xb5000060, 0x12800000, kReturn, 0x52800000, kReturn},
                  {0x36f80040, kCall, kCall, kReturn}};
  program.active = 1;
  CHECK(program.crash_at(2, false).only_on_failure);
  CHECK(program.crash_at(3, false).regardless);
  // ret; caller: strb w1, [x0]
  Program wrapper({kReturn}, {0x39000001});
  wrapper.active = 1;
  CHECK(wrapper.crash_at(0, true, 0).derived);
}

TEST_CASE("a frame that a function leaves, and a tail call through a linkage table") {
  // ldp x29, x30, [sp], #96; then an entry: adrp x16; ldr x17, [x16, #8]; add x16; br x17
  Program left{{0xa8c67bfd, 0x90000010, 0xf9400611, 0x91002210, 0xd61f0220}, {0xd4207d00}};
  left.active = 1;
  CHECK(left.crash_at(0, true).regardless);
  // Nothing is known of what it returns, as of any call.
  Program returned{{0xa8c67bfd, 0xd61f0220}, {0x39000001}};
  returned.active = 1;
  CHECK_FALSE(returned.crash_at(0, true, 0).derived);
  // With the frame still there: not a tail call. Nor is a jump through a switch's table.
  Program open_frame({0xd61f0220}, {0xd4207d00});
  Program table{{0xa8c67bfd, 0xd61f0000}, {0xd4207d00}};  // br x0
  for (Program* program : {&open_frame, &table}) {
    program->active = 1;
    CHECK_FALSE(program->crash_at(0, true).regardless);
  }
}

TEST_CASE("a value that a comparison selects counts as a check") {
  // mov w1, #0; mov w2, #-1; cmp x0, #0; csel w0, w2, w1, eq; caller: tbz w0, #31, +8; bl …; ret
  Program selected{{0x52800001, 0x12800002, 0xf100001f, 0x1a810040, kReturn},
                   {0x36f80040, kCall, kReturn}};
  // cmp x0, #0; csetm w0, eq
  Program set{{0xf100001f, 0x5a9f13e0, kReturn}, {0x36f80040, kCall, kReturn}};
  for (Program* program : {&selected, &set}) {
    program->active = 1;
    CHECK(program->crash_at(2, false).only_on_failure);
  }
}

TEST_CASE("a global variable is found by its page") {
  // adrp x1, page; str x0, [x1, #8]; adrp x2, page; ldr x0, [x2, #8]; cbnz x0, +8; bl …; ret
  Program program{{0x90000001, 0xf9000420, 0x90000002, 0xf9400440, 0xb5000040, kCall, kReturn}};
  CHECK(program.crash_at(6, false).only_on_failure);
  CHECK(program.crash_at(6, false).kept);
}

TEST_CASE("an argument of the call in which the program crashed") {
  // mov x1, x0; mov w0, #1; bl …
  Program program{{0xaa0003e1, 0x52800020, kCall, kReturn}};
  CHECK(program.crash_at(3, false).argument);
  // mov w0, #0; bl …
  Program other{{0x52800000, kCall, kReturn}};
  CHECK_FALSE(other.crash_at(2, false).argument);
}

TEST_CASE("code that cannot be followed decides nothing") {
  Program indirect{{0xd61f0000}};
  Program unreadable{{0x06060606}};
  Program endless{{0x14000000}};  // b to itself
  for (Program* program : {&indirect, &unreadable, &endless}) {
    const ResultFlow flow = program->crash_at(1, false);
    CHECK_FALSE(flow.checked);
    CHECK_FALSE(flow.only_on_failure);
    CHECK_FALSE(flow.regardless);
    CHECK_FALSE(flow.derived);
  }
  CHECK_FALSE(flow_of_one_frame().kept);
}

TEST_CASE("a pointer that a failed call has not set is what it was before") {
  constexpr std::uint64_t kOld = 0x5000, kNoAddress = 0x6161'6161'6161'6161;
  // add x0, sp, #8; bl …; ldr x0, [sp, #8]; strb w1, [x0]
  Program unset{{0x910023e0, kCall, 0xf94007e0, 0x39000001}};
  // The same with a check behind the call, which replaces it: tbz w0, #31, +8; str xzr, [sp, #8]
  Program replaced{{0x910023e0, kCall, 0x36f80040, 0xf90007ff, 0xf94007e0, 0x39000001}};
  for (Program* program : {&unset, &replaced}) {
    program->start = 8;
    program->failed = ~std::uint64_t{0};
    program->stored_by = 0;
    std::memcpy(program->stack + 32 + 8, &kOld, sizeof kOld);
  }
  CHECK(unset.crash_at(3, true, kOld).derived);
  CHECK_FALSE(unset.crash_at(3, true, kOld + 8).derived);
  CHECK_FALSE(replaced.crash_at(5, true, kOld).derived);
  std::memcpy(unset.stack + 32 + 8, &kNoAddress, sizeof kNoAddress);
  CHECK(unset.crash_at(3, true, 0).derived);  // the kernel reports no address
  unset.stored_by = Question::kNone;
  CHECK_FALSE(unset.crash_at(3, true, 0).derived);
  // add x0, sp, #8; bl …; ldr x0, [sp, #8]; bl …
  Program passed{{0x910023e0, kCall, 0xf94007e0, kCall}};
  passed.start = 8;
  passed.failed = ~std::uint64_t{0};
  passed.stored_by = 0;
  std::memcpy(passed.stack + 32 + 8, &kOld, sizeof kOld);
  CHECK(passed.crash_at(4, false, kOld + 0x100).derived);
  CHECK(passed.crash_at(4, false, kOld + 0x100).argument);
  CHECK_FALSE(passed.crash_at(4, false, 0x90'0000).derived);
}

TEST_CASE("a loop that ends with the failed call, which may end it for another reason as well") {
  // loop: bl …; cmn x0, #1; b.ne loop; bl …
  Program program{{kCall, 0xb100041f, 0x54ffffc1, kCall}};
  program.start = 4;
  program.failed = ~std::uint64_t{0};
  CHECK(program.crash_at(4, false).only_on_failure);
  program.ambiguous = true;
  CHECK_FALSE(program.crash_at(4, false).only_on_failure);
}
