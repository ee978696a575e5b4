// Functions in machine code of A64, as compilers make them: what they do with the result of the
// call before their first instruction.
#include <initializer_list>

#include "tests/unit/recorder/code_flow/both_machines.h"

namespace oomrec::code_flow {

namespace {

constexpr std::uint32_t kReturn = 0xd65f03c0;
constexpr std::uint32_t kCall = 0x94000008;  // far behind the code
constexpr std::size_t kWord = 4;

std::vector<std::uint8_t> words(std::initializer_list<std::uint32_t> words) {
  std::vector<std::uint8_t> bytes;
  for (const std::uint32_t word : words)
    for (unsigned i = 0; i < 4; ++i) bytes.push_back(static_cast<std::uint8_t>(word >> (8 * i)));
  return bytes;
}

// tbz w0, #31, +8; bl …; bl …; ret: a caller that compares with -1.
const std::vector<std::uint8_t> kTestsSign = words({0x36f80040, kCall, kCall, kReturn});

}  // namespace

const Samples kSamples{
    .returns = words({kReturn}),
    // str x0, [sp, #24]; ldr x0, [sp, #24]; add x0, x0, #16; mov w1, #1; strb w1, [x0]
    .slots = {words({0xf9000fe0, 0xf9400fe0, 0x91004000, 0x52800021, 0x39000001}), 4 * kWord},
    // mov x19, x0; bl …; strb w1, [x19, x1]
    .registers = {words({0xaa0003f3, kCall, 0x38216a61}), 2 * kWord},
    // A call overwrites x0.
    .lost = {words({kCall, 0x39000001}), kWord},
    // cbnz x0, +8; bl …; then a common end: bl …; ret
    .only_on_failure = {words({0xb5000040, kCall, kCall, kReturn}), 2 * kWord, 3 * kWord},
    // cbz x0, +8; bl X; bl X; ret
    .aborts = {words({0xb4000040, 0x94000008, 0x94000007, kReturn}), 3 * kWord},
    // cbz x0, +16; cmp x2, x1; b.ne +4; bl X (never returns); bl Y; ret
    .unknown_turn = {words({0xb4000080, 0xeb01005f, 0x54000021, 0x94000008, kCall, kReturn}),
                     5 * kWord},
    // cmn x0, #1; b.ne end; bl …; end: ret
    .map_failed = {words({0xb100041f, 0x54000041, kCall, kReturn}), 3 * kWord},
    // str x0, [x19]; stp x0, xzr, [x19]
    .stored = {{words({0xf9000660, kReturn})}, {words({0xa9007e60, kReturn})}},
    // cbz x0, +8; str x0, [x19, #8]; ret; caller: mov w0, #0; ret
    .stored_if_checked = {.code = words({0xb4000040, 0xf9000660, kReturn}),
                          .caller = words({0x52800000, kReturn})},
    // cmp x2, x1; b.eq: a comparison of something else may be one of the result
    .stored_after_unknown = {words({0xeb01005f, 0x54000020, 0xf9000660, kReturn})},
    // cbnz x0, +12; mov w0, #-1; ret; mov w0, #0; ret
    .returns_failure = {words({0xb5000060, 0x12800000, kReturn, 0x52800000, kReturn}), 2 * kWord,
                        3 * kWord, kTestsSign},
    // ret; caller: strb w1, [x0]
    .returns_result = {.code = words({kReturn}), .caller = words({0x39000001})},
    // ldp x29, x30, [sp], #96; then an entry: adrp x16; ldr x17, [x16, #8]; add x16; br x17
    .leaves_frame = {.code = words({0xa8c67bfd, 0x90000010, 0xf9400611, 0x91002210, 0xd61f0220}),
                     .caller = words({0xd4207d00})},
    .leaves_with_result = {.code = words({0xa8c67bfd, 0xd61f0220}), .caller = words({0x39000001})},
    .keeps_frame = {.code = words({0xd61f0220}), .caller = words({0xd4207d00})},
    // br x0
    .jumps_by_table = {.code = words({0xa8c67bfd, 0xd61f0000}), .caller = words({0xd4207d00})},
    // mov w1, #0; mov w2, #-1; cmp x0, #0; csel w0, w2, w1, eq; and: cmp x0, #0; csetm w0, eq
    .selected = {{words({0x52800001, 0x12800002, 0xf100001f, 0x1a810040, kReturn}), 2 * kWord, 0,
                  words({0x36f80040, kCall, kReturn})},
                 {words({0xf100001f, 0x5a9f13e0, kReturn}), 2 * kWord, 0,
                  words({0x36f80040, kCall, kReturn})}},
    // mov x1, x0; mov w0, #1; bl …
    .passes_result = {words({0xaa0003e1, 0x52800020, kCall, kReturn}), 3 * kWord},
    // mov w0, #0; bl …
    .passes_other = {words({0x52800000, kCall, kReturn}), 2 * kWord},
    // br x0; what is no instruction; b to itself
    .not_followed = {{words({0xd61f0000}), kWord},
                     {words({0x06060606}), kWord},
                     {words({0x14000000}), kWord}},
    // add x0, sp, #8; bl …; ldr x0, [sp, #8]; strb w1, [x0]
    .unset = {words({0x910023e0, kCall, 0xf94007e0, 0x39000001}), 3 * kWord, 2 * kWord},
    // The same with a check behind the call, which replaces it: tbz w0, #31, +8; str xzr, [sp, #8]
    .unset_or_replaced = {words(
                              {0x910023e0, kCall, 0x36f80040, 0xf90007ff, 0xf94007e0, 0x39000001}),
                          5 * kWord, 2 * kWord},
    // add x0, sp, #8; bl …; ldr x0, [sp, #8]; bl …
    .unset_and_passed = {words({0x910023e0, kCall, 0xf94007e0, kCall}), 4 * kWord, 2 * kWord},
    // loop: bl …; cmn x0, #1; b.ne loop; bl …
    .loops = {words({kCall, 0xb100041f, 0x54ffffc1, kCall}), 4 * kWord, kWord},
};

TEST_CASE("a negative result is found by its sign") {
  // tbz w0, #31, end; bl …; end: ret
  Program program{{words({0x36f80040, kCall, kReturn})}};
  program.failed = ~std::uint64_t{0};
  CHECK(program.crash_at(2 * kWord, false).only_on_failure);
  program.failed = 1;
  CHECK_FALSE(program.crash_at(2 * kWord, false).only_on_failure);
}

TEST_CASE("a comparison that another one decides about") {
  // mov w1, #0; cmp x0, #0; ccmp x1, #0, #0, eq; b.ne end; bl …; end: ret
  Program both{{words({0x52800001, 0xf100001f, 0xfa400820, 0x54000041, kCall, kReturn})}};
  CHECK(both.crash_at(5 * kWord, false).only_on_failure);
  // mov w1, #0; cmp x0, #0; ccmp x1, #0, #4, ne; b.ne end: equal either way
  Program either{{words({0x52800001, 0xf100001f, 0xfa401824, 0x54000041, kCall, kReturn})}};
  CHECK_FALSE(either.crash_at(5 * kWord, false).only_on_failure);
  CHECK(either.crash_at(5 * kWord, false).regardless);
}

TEST_CASE("a global variable is found by its page") {
  // adrp x1, page; str x0, [x1, #8]; adrp x2, page; ldr x0, [x2, #8]; cbnz x0, +8; bl …; ret
  Program program{
      {words({0x90000001, 0xf9000420, 0x90000002, 0xf9400440, 0xb5000040, kCall, kReturn})}};
  CHECK(program.crash_at(6 * kWord, false).only_on_failure);
  CHECK(program.crash_at(6 * kWord, false).kept);
}

}  // namespace oomrec::code_flow
