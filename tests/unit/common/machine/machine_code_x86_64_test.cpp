// Instructions of x86-64 as gcc and clang emit them, and bytes that are none.
#include "common/machine/machine_code.h"

#include <doctest/doctest.h>

#include <initializer_list>
#include <vector>

using namespace oomrec::machine_code;

namespace {

constexpr std::uint8_t kRax = 0, kRdx = 2, kRbp = 5;

Instruction decoded(std::initializer_list<std::uint8_t> bytes) {
  const std::vector<std::uint8_t> code{bytes};
  Instruction instruction;
  REQUIRE(decode(code, instruction));
  CHECK(instruction.length == code.size());
  // Cut anywhere, it is no instruction.
  for (std::size_t size = 0; size < code.size(); ++size) {
    Instruction cut;
    CHECK_FALSE(decode(std::span{code}.first(size), cut));
  }
  return instruction;
}

}  // namespace

TEST_CASE("moves and comparisons have their operands") {
  const Instruction store = decoded({0x48, 0x89, 0x45, 0xf8});  // mov %rax,-8(%rbp)
  CHECK(store.operation == Operation::move);
  CHECK(store.bytes == 8);
  CHECK(store.from.reg == kRax);
  CHECK(store.to.kind == OperandKind::memory);
  CHECK(store.memory.base == kRbp);
  CHECK(store.memory.displacement == -8);

  const Instruction compare = decoded({0x48, 0x83, 0x7d, 0xf8, 0x00});  // cmpq $0,-8(%rbp)
  CHECK(compare.operation == Operation::compare);
  CHECK(compare.immediate == 0);
  const Instruction minus_one = decoded({0x48, 0x83, 0xf8, 0xff});  // cmp $-1,%rax
  CHECK(minus_one.operation == Operation::compare);
  CHECK(minus_one.immediate == -1);

  const Instruction test = decoded({0x4d, 0x85, 0xe4});  // test %r12,%r12
  CHECK(test.operation == Operation::test);
  CHECK(test.to.reg == 12);
  CHECK(test.from.reg == 12);
}

TEST_CASE("branches know their distance") {
  const Instruction near = decoded({0x74, 0xfe});  // je to itself
  CHECK(near.operation == Operation::jump_if);
  CHECK(near.condition == kEqual);
  CHECK(near.immediate == -2);
  CHECK(decoded({0x0f, 0x85, 0x00, 0x01, 0x00, 0x00}).immediate == 256);
  CHECK(decoded({0xe8, 0, 0, 0, 0}).operation == Operation::call);
  CHECK(decoded({0xff, 0xd0}).operation == Operation::call);
  CHECK(decoded({0x3e, 0xff, 0xe0}).operation == Operation::jump_indirect);
  CHECK(decoded({0xf2, 0xc3}).operation == Operation::leave_function);
  CHECK(decoded({0x0f, 0x0b}).operation == Operation::stop);
}

TEST_CASE("memory operands: base, index, scale and displacement") {
  const Instruction indexed = decoded({0x42, 0xc6, 0x84, 0xa3, 0x10, 0, 0, 0, 0x01});
  CHECK(indexed.memory.base == 3);  // movb $1,0x10(%rbx,%r12,4)
  CHECK(indexed.memory.index == 12);
  CHECK(indexed.memory.index_extension.shift == 2);
  CHECK(indexed.memory.displacement == 16);
  const Instruction absolute = decoded({0xc6, 0x04, 0x25, 0x10, 0, 0, 0, 0x01});
  CHECK(absolute.memory.base == kNoRegister);  // movb $1,0x10
  CHECK(absolute.memory.displacement == 16);
  CHECK(decoded({0x48, 0x8b, 0x05, 8, 0, 0, 0}).memory.base == kNextInstruction);
  CHECK(decoded({0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0}).memory.other_segment);
  CHECK_FALSE(decoded({0x48, 0x8d, 0x44, 0x24, 0x08}).has_memory);  // lea accesses none
}

TEST_CASE("lengths of what is not followed") {
  decoded({0xf3, 0x0f, 0x1e, 0xfa});                       // endbr64
  decoded({0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0});  // nop
  decoded({0x0f, 0x11, 0x00});                             // movups %xmm0,(%rax)
  decoded({0x66, 0x0f, 0x70, 0xc0, 0xe0});                 // pshufd $0xe0,%xmm0,%xmm0
  decoded({0xc5, 0xf8, 0x77});                             // vzeroupper
  decoded({0xc4, 0xe3, 0x7d, 0x39, 0xc1, 0x01});           // vextracti128 $1,%ymm0,%xmm1
  decoded({0x62, 0xf1, 0xfe, 0x48, 0x6f, 0x06});           // vmovdqu64 (%rsi),%zmm0
  decoded({0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8});           // movabs
  decoded({0x66, 0x3d, 0x34, 0x12});                       // cmp $0x1234,%ax
  decoded({0xf0, 0x48, 0x0f, 0xb1, 0x0a});                 // lock cmpxchg %rcx,(%rdx)
  decoded({0xd9, 0x45, 0xfc});                             // flds -4(%rbp)
  decoded({0xf7, 0x45, 0xfc, 1, 0, 0, 0});                 // testl $1,-4(%rbp)
  decoded({0xf7, 0x5d, 0xfc});                             // negl -4(%rbp)
}

TEST_CASE("a general register that a vector instruction writes is overwritten") {
  CHECK(decoded({0x66, 0x0f, 0xd7, 0xc1}).to.reg == kRax);        // pmovmskb %xmm1,%eax
  CHECK(decoded({0x66, 0x48, 0x0f, 0x7e, 0xc2}).to.reg == kRdx);  // movq %xmm0,%rdx
  CHECK(decoded({0xf3, 0x0f, 0x7e, 0xc1}).to.kind == OperandKind::none);
}

TEST_CASE("bytes that are no instruction") {
  for (const std::uint8_t byte :
       std::initializer_list<std::uint8_t>{0x06, 0x60, 0x9a, 0xd6, 0xea}) {
    const std::uint8_t code[kLongestInstruction] = {byte};
    Instruction instruction;
    CHECK_FALSE(decode(code, instruction));
  }
  const std::uint8_t prefixes[kLongestInstruction + 1] = {0x66, 0x66, 0x66, 0x66, 0x66, 0x66,
                                                          0x66, 0x66, 0x66, 0x66, 0x66, 0x66,
                                                          0x66, 0x66, 0x66, 0x90};
  Instruction instruction;
  CHECK_FALSE(decode(prefixes, instruction));
}
