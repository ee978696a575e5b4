// Functions in machine code of x86-64, as compilers make them: what they do with the result of the
// call before their first instruction.
#include "recorder/code_flow/result_flow.h"

#include <doctest/doctest.h>

#include <cstring>
#include <initializer_list>

#include "tests/unit/recorder/code_flow/program.h"

using namespace oomrec;
using namespace oomrec::code_flow;

namespace {

struct Program : CodeUnderTest {
  explicit Program(std::initializer_list<std::uint8_t> bytes,
                   std::initializer_list<std::uint8_t> caller = {0xc3})
      : CodeUnderTest(bytes, caller) {}
};

}  // namespace

TEST_CASE("an address computed from the result, unoptimized and optimized") {
  // mov %rax,-8(%rbp); mov -8(%rbp),%rax; add $0x10,%rax; movb $1,(%rax)
  Program slots{
      {0x48, 0x89, 0x45, 0xf8, 0x48, 0x8b, 0x45, 0xf8, 0x48, 0x83, 0xc0, 0x10, 0xc6, 0x00, 0x01}};
  CHECK(slots.crash_at(12, true, 0x10).derived);
  CHECK_FALSE(slots.crash_at(12, true, 0x18).derived);  // not the address of the fault
  // mov %rax,%rbx; call …; movb $1,0x10(%rbx,%rcx)
  Program registers{{0x48, 0x89, 0xc3, 0xe8, 0, 0, 0, 0, 0xc6, 0x44, 0x0b, 0x10, 0x01}};
  CHECK(registers.crash_at(8, true, 0x5010).derived);
  // A call overwrites rax.
  Program lost{{0xe8, 0, 0, 0, 0, 0xc6, 0x00, 0x01}};
  CHECK_FALSE(lost.crash_at(5, true, 0).derived);
}

TEST_CASE("a place that only a failure leads to") {
  // test %rax,%rax; jne +5; call …; then a common end: call …; ret
  Program program{{0x48, 0x85, 0xc0, 0x75, 0x05, 0xe8, 0, 0, 0, 0, 0xe8, 0, 0, 0, 0, 0xc3}};
  const ResultFlow inside = program.crash_at(10, false);
  CHECK(inside.checked);
  CHECK(inside.only_on_failure);
  CHECK_FALSE(inside.regardless);
  const ResultFlow after = program.crash_at(15, false);
  CHECK(after.checked);
  CHECK(after.regardless);
  CHECK_FALSE(after.only_on_failure);
  CHECK_FALSE(after.unchecked);
}

TEST_CASE("a call that aborts the program never returns, wherever it is made") {
  // test %rax,%rax; je +5; call X; call X; ret
  Program program{{0x48, 0x85, 0xc0, 0x74, 0x05, 0xe8, 0x05, 0, 0, 0, 0xe8, 0, 0, 0, 0, 0xc3}};
  CHECK(program.crash_at(15, false).regardless);
  program.aborted = true;
  CHECK(program.crash_at(15, false).only_on_failure);
}

TEST_CASE("the way that takes no unknown turn is the one the program took") {
  // test %rax,%rax; je +10; cmp %rcx,%rdx; jne +0; call X (never returns); call Y; ret
  Program program{{0x48, 0x85, 0xc0, 0x74, 0x0a, 0x48, 0x39, 0xca, 0x75, 0x00, 0xe8,
                   0,    0,    0,    0,    0xe8, 0,    0,    0,    0,    0xc3}};
  CHECK(program.crash_at(20, false).only_on_failure);
  CHECK_FALSE(program.crash_at(20, false).regardless);
}

TEST_CASE("a loop on the way to the end: what it changes is unknown behind it") {
  // test %rax,%rax; jne end; xor %ecx,%ecx; loop: add $1,%ecx; cmp $100,%ecx; jne loop; call …
  Program program{{0x48, 0x85, 0xc0, 0x75, 0x0f, 0x31, 0xc9, 0x83, 0xc1, 0x01, 0x83,
                   0xf9, 0x64, 0x75, 0xf8, 0xe8, 0,    0,    0,    0,    0xc3}};
  CHECK(program.crash_at(20, false).only_on_failure);
  CHECK_FALSE(program.crash_at(20, false).regardless);
  // The same without a check: xor %ecx,%ecx; loop: …; cmp $3,%ecx; jne end; call …; end: ret
  Program counted{{0x31, 0xc9, 0x83, 0xc1, 0x01, 0x83, 0xf9, 0x64, 0x75, 0xf8, 0x83,
                   0xf9, 0x03, 0x75, 0x05, 0xe8, 0,    0,    0,    0,    0xc3}};
  CHECK(counted.crash_at(20, false).regardless);  // 3 is not excluded
}

TEST_CASE("MAP_FAILED is compared with -1") {
  // cmp $-1,%rax; je +2; jmp end; call …; end: ret
  Program program{{0x48, 0x83, 0xf8, 0xff, 0x74, 0x02, 0xeb, 0x05, 0xe8, 0, 0, 0, 0, 0xc3}};
  program.failed = ~std::uint64_t{0};
  CHECK(program.crash_at(13, false).only_on_failure);
  program.failed = 0;
  CHECK_FALSE(program.crash_at(13, false).only_on_failure);
}

TEST_CASE("an unchecked result that is kept") {
  // mov %rax,0x8(%rbx); ret
  Program stored{{0x48, 0x89, 0x43, 0x08, 0xc3}};
  stored.active = 2;  // both functions have returned
  CHECK(stored.crash_at(0, true).unchecked);
  CHECK(stored.crash_at(0, true).kept);
  // test %rax,%rax; je +4; mov %rax,0x8(%rbx); ret
  Program checked{{0x48, 0x85, 0xc0, 0x74, 0x04, 0x48, 0x89, 0x43, 0x08, 0xc3}, {0x31, 0xc0, 0xc3}};
  checked.active = 2;
  CHECK(checked.crash_at(0, true).checked);
  CHECK_FALSE(checked.crash_at(0, true).kept);
  // cmp %rcx,%rdx; je: a comparison of something else may be one of the result
  Program unknown{{0x48, 0x39, 0xca, 0x74, 0x00, 0x48, 0x89, 0x43, 0x08, 0xc3}};
  unknown.active = 2;
  CHECK_FALSE(unknown.crash_at(0, true).unchecked);
  CHECK(unknown.crash_at(0, true).kept);
}

TEST_CASE("what a function returns is followed in its caller") {
  // test %rax,%rax; jne +6; mov $-1,%eax; ret; xor %eax,%eax; ret
  // caller: test %eax,%eax; jns +5; call …; call …; ret
  Program program{
      {0x48, 0x85, 0xc0, 0x75, 0x06, 0xb8, 0xff, 0xff, 0xff, 0xff, 0xc3, 0x31, 0xc0, 0xc3},
      {0x85, 0xc0, 0x79, 0x05, 0xe8, 0, 0, 0, 0, 0xe8, 0, 0, 0, 0, 0xc3}};
  program.active = 1;
  CHECK(program.crash_at(9, false).only_on_failure);
  CHECK(program.crash_at(14, false).regardless);
  // ret; caller: movb $1,0x20(%rax)
  Program wrapper{{0xc3}, {0xc6, 0x40, 0x20, 0x01}};
  wrapper.active = 1;
  CHECK(wrapper.crash_at(0, true, 0x20).derived);
}

TEST_CASE("a failure that a function passes on as its own is its caller's result") {
  // test %rax,%rax; jne +3; xor %eax,%eax; ret; ret
  const std::initializer_list<std::uint8_t> checks{0x48, 0x85, 0xc0, 0x75, 0x03,
                                                   0x31, 0xc0, 0xc3, 0xc3};
  Program used{checks, {0xc6, 0x40, 0x20, 0x01}};  // movb $1,0x20(%rax)
  used.active = 1;
  CHECK(used.crash_at(0, true, 0x20).derived);
  CHECK_FALSE(used.crash_at(0, true, 0x28).derived);
  Program selected{{0x31, 0xd2, 0x48, 0x83, 0xf8, 0xff, 0x48, 0x0f, 0x44, 0xc2, 0xc3},
                   {0xc6, 0x40, 0x20, 0x01}};  // xor %edx,%edx; cmp $-1,%rax; cmove %rdx,%rax; ret
  selected.active = 1;
  selected.failed = ~std::uint64_t{0};
  CHECK(selected.crash_at(0, true, 0x20).derived);
  Program stored{checks, {0x48, 0x89, 0x43, 0x08, 0xc3}};  // mov %rax,0x8(%rbx); ret
  Program flag{checks, {0x88, 0x43, 0x08, 0xc3}};          // mov %al,0x8(%rbx); ret
  for (Program* program : {&stored, &flag}) program->active = 2;
  CHECK(stored.crash_at(0, true).kept);
  CHECK_FALSE(flag.crash_at(0, true).kept);
  Program pointer{checks, {0x48, 0x89, 0xc7, 0xe8, 0, 0, 0, 0}};  // mov %rax,%rdi; call …
  Program number{checks, {0x48, 0x63, 0xf8, 0xe8, 0, 0, 0, 0}};   // movslq %eax,%rdi; call …
  Program index{checks,
                {0x48, 0x98, 0xc6, 0x44, 0x03, 0x20, 0x01}};  // cltq; movb $1,0x20(%rbx,%rax)
  for (Program* program : {&pointer, &number, &index}) program->active = 1;
  CHECK(pointer.crash_at(8, false).argument);
  CHECK_FALSE(number.crash_at(8, false).argument);
  CHECK_FALSE(index.crash_at(2, true, 0x20).derived);
}

TEST_CASE("a size that became 0 divides") {
  // test %rax,%rax; setne %cl; movzbl %cl,%ecx; shl $6,%ecx; div %ecx
  Program program{
      {0x48, 0x85, 0xc0, 0x0f, 0x95, 0xc1, 0x0f, 0xb6, 0xc9, 0xc1, 0xe1, 0x06, 0xf7, 0xf1}};
  program.divided = true;
  CHECK(program.crash_at(12, true).derived);
  // test %rax,%rax; mov $64,%ecx; jne +2; xor %ecx,%ecx; div %ecx
  Program chosen{{0x48, 0x85, 0xc0, 0xb9, 0x40, 0, 0, 0, 0x75, 0x02, 0x31, 0xc9, 0xf7, 0xf1}};
  chosen.divided = true;
  CHECK(chosen.crash_at(12, true).derived);
  Program other{{0x31, 0xc9, 0xf7, 0xf1}};  // xor %ecx,%ecx; div %ecx
  other.divided = true;
  CHECK_FALSE(other.crash_at(2, true).derived);
}

TEST_CASE("the next call is told from later ones") {
  // call *…(%rip); call …; call …
  Program program{{0xff, 0x15, 0, 0, 0, 0, 0xe8, 0, 0, 0, 0, 0xe8, 0, 0, 0, 0, 0xc3}};
  CHECK(program.crash_at(11, false).at_once);
  CHECK_FALSE(program.crash_at(16, false).at_once);
}

TEST_CASE("a tail call through a linkage table returns to the caller") {
  // test %rax,%rax; jne +5; call …; add $0x58,%rsp; jmp *0(%rip); caller: ud2
  Program handled{{0x48, 0x85, 0xc0, 0x75, 0x05, 0xe8, 0, 0, 0, 0,
                   0x48, 0x83, 0xc4, 0x58, 0xff, 0x25, 0, 0, 0, 0},
                  {0x0f, 0x0b}};
  handled.active = 1;
  CHECK(handled.crash_at(0, true).regardless);
  // Nothing is known of what it returns, as of any call.
  Program returned{{0x48, 0x83, 0xc4, 0x58, 0xff, 0x25, 0, 0, 0, 0}, {0xc6, 0x40, 0x20, 0x01}};
  returned.active = 1;
  CHECK_FALSE(returned.crash_at(0, true, 0x20).derived);
  // With the frame still there: not a tail call. Nor is a jump through a switch's table.
  Program open_frame{{0xff, 0x25, 0, 0, 0, 0}, {0x0f, 0x0b}};
  Program table{{0x48, 0x83, 0xc4, 0x58, 0xff, 0x24, 0xc8}, {0x0f, 0x0b}};  // jmp *(%rax,%rcx,8)
  for (Program* program : {&open_frame, &table}) {
    program->active = 1;
    CHECK_FALSE(program->crash_at(0, true).regardless);
  }
}

TEST_CASE("the program crashed in a function that the active one has called last") {
  // mov %rax,%rdi; add $0x58,%rsp; jmp *0(%rip), where the function's address follows
  Program program{
      {0x48, 0x89, 0xc7, 0x48, 0x83, 0xc4, 0x58, 0xff, 0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}};
  const auto crash_in = [&](std::size_t function) {
    const std::uint64_t address = CodeUnderTest::address_of(program.code) + function;
    std::memcpy(program.code.data() + 13, &address, sizeof address);
    return program.crash_at(24, true, 0x10);
  };
  CHECK(crash_in(21).argument);
  CHECK_FALSE(crash_in(25).argument);  // in another one
}

TEST_CASE("a value that a comparison selects counts as a check") {
  // xor %ecx,%ecx; test %rax,%rax; mov $-1,%edx; mov %ecx,%eax; cmove: xor would change the flags
  Program program{{0x31, 0xc9, 0xba, 0xff, 0xff, 0xff, 0xff, 0x48, 0x85, 0xc0, 0x0f, 0x44, 0xca,
                   0x89, 0xc8, 0xc3},
                  {0x85, 0xc0, 0x79, 0x05, 0xe8, 0, 0, 0, 0, 0xc3}};
  program.active = 1;
  CHECK(program.crash_at(9, false).only_on_failure);
}

TEST_CASE("an argument of the call in which the program crashed") {
  // mov %rax,%rdi; mov $1,%esi; call …
  Program program{{0x48, 0x89, 0xc7, 0xbe, 0x01, 0, 0, 0, 0xe8, 0, 0, 0, 0, 0xc3}};
  CHECK(program.crash_at(13, false).argument);
  // xor %edi,%edi; call …
  Program other{{0x31, 0xff, 0xe8, 0, 0, 0, 0, 0xc3}};
  CHECK_FALSE(other.crash_at(7, false).argument);
}

TEST_CASE("code that cannot be followed decides nothing") {
  Program indirect{{0xff, 0xe0}};  // jmp *%rax
  Program unreadable{{0x06, 0x06}};
  Program endless{{0xeb, 0xfe}};  // jmp to itself
  for (Program* program : {&indirect, &unreadable, &endless}) {
    const ResultFlow flow = program->crash_at(2, false);
    CHECK_FALSE(flow.checked);
    CHECK_FALSE(flow.only_on_failure);
    CHECK_FALSE(flow.regardless);
    CHECK_FALSE(flow.derived);
  }
  CHECK_FALSE(flow_of_one_frame().kept);
}

TEST_CASE("a pointer that a failed call has not set is what it was before") {
  constexpr std::uint64_t kOld = 0x5000, kNoAddress = 0x6161'6161'6161'6161;
  // lea 8(%rsp),%rdi; call …; mov 8(%rsp),%rax; movb $1,(%rax)
  Program unset{{0x48, 0x8d, 0x7c, 0x24, 0x08, 0xe8, 0, 0, 0, 0, 0x48, 0x8b, 0x44, 0x24, 0x08, 0xc6,
                 0x00, 0x01}};
  // The same with a check behind the call, which replaces it: test %eax,%eax; jns +9; movq
  // $0,8(%rsp)
  Program replaced{{0x48, 0x8d, 0x7c, 0x24, 0x08, 0xe8, 0,    0,    0,   0, 0x85,
                    0xc0, 0x79, 0x09, 0x48, 0xc7, 0x44, 0x24, 0x08, 0,   0, 0,
                    0,    0x48, 0x8b, 0x44, 0x24, 0x08, 0xc6, 0x00, 0x01}};
  for (Program* program : {&unset, &replaced}) {
    program->start = 10;
    program->failed = ~std::uint64_t{0};
    program->stored_by = 0;
    std::memcpy(program->stack + 32 + 8, &kOld, sizeof kOld);
  }
  CHECK(unset.crash_at(15, true, kOld).derived);
  CHECK_FALSE(unset.crash_at(15, true, kOld + 8).derived);
  CHECK_FALSE(replaced.crash_at(28, true, kOld).derived);
  std::memcpy(unset.stack + 32 + 8, &kNoAddress, sizeof kNoAddress);
  CHECK(unset.crash_at(15, true, 0).derived);  // the kernel reports no address
  unset.stored_by = Question::kNone;
  CHECK_FALSE(unset.crash_at(15, true, 0).derived);
  // lea 8(%rsp),%rdi; call …; mov 8(%rsp),%rdi; call …
  Program passed{{0x48, 0x8d, 0x7c, 0x24, 0x08, 0xe8, 0, 0, 0, 0,
                  0x48, 0x8b, 0x7c, 0x24, 0x08, 0xe8, 0, 0, 0, 0}};
  passed.start = 10;
  passed.failed = ~std::uint64_t{0};
  passed.stored_by = 0;
  std::memcpy(passed.stack + 32 + 8, &kOld, sizeof kOld);
  CHECK(passed.crash_at(20, false, kOld + 0x100).derived);
  CHECK(passed.crash_at(20, false, kOld + 0x100).argument);
  CHECK_FALSE(passed.crash_at(20, false, 0x90'0000).derived);
}

TEST_CASE("a loop that ends with the failed call, which may end it for another reason as well") {
  // loop: call …; cmp $-1,%rax; jne loop; call …
  Program program{{0xe8, 0, 0, 0, 0, 0x48, 0x83, 0xf8, 0xff, 0x75, 0xf5, 0xe8, 0, 0, 0, 0}};
  program.start = 5;
  program.failed = ~std::uint64_t{0};
  CHECK(program.crash_at(16, false).only_on_failure);
  program.ambiguous = true;
  CHECK_FALSE(program.crash_at(16, false).only_on_failure);
}
