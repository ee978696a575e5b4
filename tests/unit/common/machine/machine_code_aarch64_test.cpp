// Instructions of A64 as gcc and clang emit them, and words that are none.
#include "common/machine/machine_code.h"

#include <doctest/doctest.h>

#include <initializer_list>

using namespace oomrec::machine_code;

namespace {

constexpr std::uint8_t kStackPointer = 31;

bool decode_word(std::uint32_t word, Instruction& instruction) {
  std::uint8_t code[4];
  for (unsigned i = 0; i < 4; ++i) code[i] = static_cast<std::uint8_t>(word >> (8 * i));
  Instruction cut;
  CHECK_FALSE(decode(std::span{code}.first(3), cut));
  return decode(code, instruction);
}

Instruction decoded(std::uint32_t word) {
  Instruction instruction;
  CAPTURE(word);
  REQUIRE(decode_word(word, instruction));
  CHECK(instruction.length == 4);
  return instruction;
}

}  // namespace

TEST_CASE("loads and stores have their operands") {
  const Instruction store = decoded(0xf9000fe0);  // str x0, [sp, #24]
  CHECK(store.operation == Operation::move);
  CHECK(store.bytes == 8);
  CHECK(store.from.reg == 0);
  CHECK(store.to.kind == OperandKind::memory);
  CHECK(store.memory.base == kStackPointer);
  CHECK(store.memory.displacement == 24);
  CHECK(store.has_memory);

  const Instruction byte = decoded(0x39400001);  // ldrb w1, [x0]
  CHECK(byte.operation == Operation::move_zero);
  CHECK(byte.from_bytes == 1);
  CHECK(byte.to.reg == 1);
  const Instruction extended = decoded(0xb9800401);  // ldrsw x1, [x0, #4]
  CHECK(extended.operation == Operation::move_signed);
  CHECK(extended.from_bytes == 4);
  CHECK(extended.bytes == 8);
  CHECK(decoded(0x39c00001).bytes == 4);  // ldrsb w1, [x0]

  const Instruction indexed = decoded(0xf862d801);  // ldr x1, [x0, w2, sxtw #3]
  CHECK(indexed.memory.index == 2);
  CHECK(indexed.memory.index_extension.bytes == 4);
  CHECK(indexed.memory.index_extension.is_signed);
  CHECK(indexed.memory.index_extension.shift == 3);

  const Instruction before = decoded(0xf8408c01);  // ldr x1, [x0, #8]!
  CHECK(before.memory.displacement == 8);
  CHECK(before.writeback == 8);
  const Instruction after = decoded(0xf8408401);  // ldr x1, [x0], #8
  CHECK(after.memory.displacement == 0);
  CHECK(after.writeback == 8);
  CHECK(decoded(0xf85f8001).memory.displacement == -8);  // ldur x1, [x0, #-8]

  const Instruction pair = decoded(0xa9be7bfd);  // stp x29, x30, [sp, #-32]!
  CHECK(pair.from.reg == 29);
  CHECK(pair.second.reg == 30);
  CHECK(pair.writeback == -32);
  const Instruction zeros = decoded(0xa9007e60);  // stp x0, xzr, [x19]
  CHECK(zeros.second.kind == OperandKind::zero);

  CHECK(decoded(0x3dc00000).to.kind == OperandKind::none);     // ldr q0, [x0]
  CHECK(decoded(0xad010400).to.kind == OperandKind::memory);   // stp q0, q1, [x0, #32]
  CHECK(decoded(0x58000081).memory.base == kNextInstruction);  // ldr x1, 16 bytes on
  CHECK(decoded(0x58000081).memory.displacement == 12);
  CHECK_FALSE(decoded(0xf9800000).has_memory);  // prfm pldl1keep, [x0]
}

TEST_CASE("what atomic instructions overwrite") {
  const Instruction exclusive = decoded(0xc8027c01);  // stxr w2, x1, [x0]
  CHECK(exclusive.operation == Operation::exchange);
  CHECK(exclusive.to.kind == OperandKind::memory);
  CHECK(exclusive.from.reg == 2);
  CHECK(decoded(0xf8218002).from.reg == 2);                      // swp x1, x2, [x0]
  CHECK(decoded(0xc8a17c02).from.reg == 1);                      // cas x1, x2, [x0]
  CHECK(decoded(0xc85f7c01).operation == Operation::move_zero);  // ldxr x1, [x0]
  CHECK(decoded(0xc89ffc01).operation == Operation::move);       // stlr x1, [x0]
}

TEST_CASE("comparisons and arithmetic") {
  const Instruction compare = decoded(0xf100001f);  // cmp x0, #0
  CHECK(compare.operation == Operation::subtract);
  CHECK(compare.to.kind == OperandKind::zero);
  CHECK(compare.changes_flags);
  CHECK(compare.bytes == 8);
  CHECK(decoded(0xb100041f).operation == Operation::add);  // cmn x0, #1
  CHECK(decoded(0x7100001f).bytes == 4);                   // cmp w0, #0
  CHECK(decoded(0xeb01005f).from.reg == 1);                // cmp x2, x1

  CHECK(decoded(0x910003fd).left.reg == kStackPointer);  // mov x29, sp
  CHECK(decoded(0x910143ff).to.reg == kStackPointer);    // add sp, sp, #80
  const Instruction scaled = decoded(0x8b224820);        // add x0, x1, w2, uxtw #2
  CHECK(scaled.from_extension.bytes == 4);
  CHECK_FALSE(scaled.from_extension.is_signed);
  CHECK(scaled.from_extension.shift == 2);
  CHECK_FALSE(scaled.changes_flags);

  CHECK(decoded(0x927cec00).immediate == -16);                     // and x0, x0, #-16
  CHECK(decoded(0x3200cc20).immediate == 0x0f0f0f0f0f0f0f0f);      // orr w0, w1, #0xf0f0f0f
  CHECK(decoded(0xf2400020).changes_flags);                        // ands x0, x1, #1
  CHECK(decoded(0x12800000).immediate == -1);                      // mov w0, #-1
  CHECK(decoded(0xaa0003f3).left.kind == OperandKind::zero);       // mov x19, x0
  CHECK(decoded(0xd37cec20).from_extension.shift == 4);            // lsl x0, x1, #4
  CHECK(decoded(0x93407c20).operation == Operation::move_signed);  // sxtw x0, w1
  CHECK(decoded(0x53001c20).from_bytes == 1);                      // uxtb w0, w1
  for (const std::uint32_t unknown : {0xd344fc20, 0x9ac20820, 0xf2a00020, 0xd53bd040})
    CHECK(decoded(unknown).operation == Operation::other);  // lsr, udiv, movk, mrs
  CHECK(decoded(0x9b020c20).left.reg == 3);                 // madd x0, x1, x2, x3

  const Instruction chained = decoded(0xfa401824);  // ccmp x1, #0, #4, ne
  CHECK(chained.operation == Operation::compare_if);
  CHECK(chained.condition == kEqual + 1);
  CHECK(chained.otherwise.zero);
  CHECK(chained.otherwise.below);
  CHECK_FALSE(chained.otherwise.negative);
}

TEST_CASE("selections") {
  const Instruction select = decoded(0x1a820020);  // csel w0, w1, w2, eq
  CHECK(select.operation == Operation::move_if);
  CHECK(select.condition == kEqual);
  CHECK(select.from.reg == 1);
  CHECK(select.left.reg == 2);
  const Instruction set = decoded(0x1a9f17e0);  // cset w0, eq
  CHECK(set.condition == kEqual + 1);
  CHECK(set.from.kind == OperandKind::zero);
  CHECK(set.immediate == 1);
  CHECK(decoded(0x5a9f13e0).immediate == -1);                 // csetm w0, eq
  CHECK(decoded(0x1a821420).left.kind == OperandKind::none);  // csinc w0, w1, w2, ne
}

TEST_CASE("branches know their distance from their end") {
  const Instruction zero = decoded(0xb4000040);  // cbz x0, two words on
  CHECK(zero.operation == Operation::jump_if_bits);
  CHECK(zero.immediate == 4);
  CHECK(zero.condition == kEqual);
  CHECK(decoded(0xb5000040).condition == kEqual + 1);         // cbnz
  CHECK(decoded(0x36f80040).from.reg == 31);                  // tbz w0, #31
  CHECK(decoded(0xb7f80040).from.reg == 63);                  // tbnz x0, #63
  CHECK(decoded(0x14000000).immediate == -4);                 // b to itself
  CHECK(decoded(0x54000068).condition == kBelowOrEqual + 1);  // b.hi
  CHECK(decoded(0x5400004d).condition == kLessOrEqual);       // b.le
  CHECK(decoded(0x94000000).operation == Operation::call);    // bl
  CHECK(decoded(0xd63f0020).operation == Operation::call);    // blr x1
  CHECK(decoded(0xd63f0020).from.reg == 1);
  CHECK(decoded(0xd61f0220).may_leave);                               // br x17
  CHECK_FALSE(decoded(0xd61f0000).may_leave);                         // br x0
  CHECK(decoded(0xd65f03c0).operation == Operation::leave_function);  // ret
  CHECK(decoded(0xd65f0bff).operation == Operation::leave_function);  // retaa
  CHECK(decoded(0xd4207d00).operation == Operation::stop);            // brk #1000
  CHECK(decoded(0x00000000).operation == Operation::stop);            // udf #0
}

TEST_CASE("addresses relative to the instruction") {
  const Instruction near = decoded(0x10000060);  // adr x0, 12 bytes on
  CHECK(near.operation == Operation::load_address);
  CHECK(near.memory.base == kNextInstruction);
  CHECK(near.memory.displacement == 8);
  CHECK_FALSE(near.has_memory);
  const Instruction page = decoded(0xb0000010);  // adrp x16, the next page
  CHECK(page.memory.base == kPage);
  CHECK(page.memory.displacement == 4096);
}

TEST_CASE("a general register that a vector instruction writes is overwritten") {
  for (const std::uint32_t writes : {0x9e660000U, 0x1e780000U, 0x0e013c00U})  // fmov, fcvtzs, umov
    CHECK(decoded(writes).to.reg == 0);
  for (const std::uint32_t vector : {0x9e670000U, 0x1e620000U})  // fmov d0, x0; scvtf d0, w0
    CHECK(decoded(vector).to.kind == OperandKind::none);
  CHECK(decoded(0x1e612000).changes_flags);  // fcmp d0, d1
}

TEST_CASE("hints overwrite nothing, a system call its result") {
  for (const std::uint32_t hint : {0xd503201f, 0xd503233f, 0xd503245f})  // nop, paciasp, bti c
    CHECK(decoded(hint).to.kind == OperandKind::none);
  CHECK(decoded(0xd4000001).to.reg == 0);  // svc #0
}

TEST_CASE("words that are no instruction, or not known") {
  // ptrue p0.b; one that is not allocated; and w0, w0 with a mask of 64 bits
  for (const std::uint32_t word : {0x2518e3e0U, 0x06060606U, 0x12400000U}) {
    Instruction instruction;
    CHECK_FALSE(decode_word(word, instruction));
  }
}
