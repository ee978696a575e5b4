// Functions in machine code of x86-64, as compilers make them: what they do with the result of the
// call before their first instruction.
#include "tests/unit/recorder/code_flow/both_machines.h"

namespace oomrec::code_flow {

const Samples kSamples{
    .returns = {0xc3},
    // mov %rax,-8(%rbp); mov -8(%rbp),%rax; add $0x10,%rax; movb $1,(%rax)
    .slots = {{0x48, 0x89, 0x45, 0xf8, 0x48, 0x8b, 0x45, 0xf8, 0x48, 0x83, 0xc0, 0x10, 0xc6, 0x00,
               0x01},
              12},
    // mov %rax,%rbx; call …; movb $1,0x10(%rbx,%rcx)
    .registers = {{0x48, 0x89, 0xc3, 0xe8, 0, 0, 0, 0, 0xc6, 0x44, 0x0b, 0x10, 0x01}, 8},
    // A call overwrites rax.
    .lost = {{0xe8, 0, 0, 0, 0, 0xc6, 0x00, 0x01}, 5},
    // test %rax,%rax; jne +5; call …; then a common end: call …; ret
    .only_on_failure = {{0x48, 0x85, 0xc0, 0x75, 0x05, 0xe8, 0, 0, 0, 0, 0xe8, 0, 0, 0, 0, 0xc3},
                        10,
                        15},
    // test %rax,%rax; je +5; call X; call X; ret
    .aborts = {{0x48, 0x85, 0xc0, 0x74, 0x05, 0xe8, 0x05, 0, 0, 0, 0xe8, 0, 0, 0, 0, 0xc3}, 15},
    // test %rax,%rax; je +10; cmp %rcx,%rdx; jne +0; call X (never returns); call Y; ret
    .unknown_turn = {{0x48, 0x85, 0xc0, 0x74, 0x0a, 0x48, 0x39, 0xca, 0x75, 0x00, 0xe8,
                      0,    0,    0,    0,    0xe8, 0,    0,    0,    0,    0xc3},
                     20},
    // cmp $-1,%rax; je +2; jmp end; call …; end: ret
    .map_failed = {{0x48, 0x83, 0xf8, 0xff, 0x74, 0x02, 0xeb, 0x05, 0xe8, 0, 0, 0, 0, 0xc3}, 13},
    // mov %rax,0x8(%rbx); ret
    .stored = {{{0x48, 0x89, 0x43, 0x08, 0xc3}}},
    // test %rax,%rax; je +4; mov %rax,0x8(%rbx); ret; caller: xor %eax,%eax; ret
    .stored_if_checked = {.code = {0x48, 0x85, 0xc0, 0x74, 0x04, 0x48, 0x89, 0x43, 0x08, 0xc3},
                          .caller = {0x31, 0xc0, 0xc3}},
    // cmp %rcx,%rdx; je: a comparison of something else may be one of the result
    .stored_after_unknown = {{0x48, 0x39, 0xca, 0x74, 0x00, 0x48, 0x89, 0x43, 0x08, 0xc3}},
    // test %rax,%rax; jne +6; mov $-1,%eax; ret; xor %eax,%eax; ret
    // caller: test %eax,%eax; jns +5; call …; call …; ret
    .returns_failure = {{0x48, 0x85, 0xc0, 0x75, 0x06, 0xb8, 0xff, 0xff, 0xff, 0xff, 0xc3, 0x31,
                         0xc0, 0xc3},
                        9,
                        14,
                        {0x85, 0xc0, 0x79, 0x05, 0xe8, 0, 0, 0, 0, 0xe8, 0, 0, 0, 0, 0xc3}},
    // ret; caller: movb $1,0x20(%rax)
    .returns_result = {.code = {0xc3}, .caller = {0xc6, 0x40, 0x20, 0x01}, .offset = 0x20},
    // test %rax,%rax; jne +5; call …; add $0x58,%rsp; jmp *0(%rip); caller: ud2
    .leaves_frame = {.code = {0x48, 0x85, 0xc0, 0x75, 0x05, 0xe8, 0, 0, 0, 0,
                              0x48, 0x83, 0xc4, 0x58, 0xff, 0x25, 0, 0, 0, 0},
                     .caller = {0x0f, 0x0b}},
    .leaves_with_result = {.code = {0x48, 0x83, 0xc4, 0x58, 0xff, 0x25, 0, 0, 0, 0},
                           .caller = {0xc6, 0x40, 0x20, 0x01},
                           .offset = 0x20},
    .keeps_frame = {.code = {0xff, 0x25, 0, 0, 0, 0}, .caller = {0x0f, 0x0b}},
    // jmp *(%rax,%rcx,8)
    .jumps_by_table = {.code = {0x48, 0x83, 0xc4, 0x58, 0xff, 0x24, 0xc8}, .caller = {0x0f, 0x0b}},
    // xor %ecx,%ecx; test %rax,%rax; mov $-1,%edx; mov %ecx,%eax; cmove: xor would change the flags
    .selected = {{{0x31, 0xc9, 0xba, 0xff, 0xff, 0xff, 0xff, 0x48, 0x85, 0xc0, 0x0f, 0x44, 0xca,
                   0x89, 0xc8, 0xc3},
                  9,
                  0,
                  {0x85, 0xc0, 0x79, 0x05, 0xe8, 0, 0, 0, 0, 0xc3}}},
    // mov %rax,%rdi; mov $1,%esi; call …
    .passes_result = {{0x48, 0x89, 0xc7, 0xbe, 0x01, 0, 0, 0, 0xe8, 0, 0, 0, 0, 0xc3}, 13},
    // xor %edi,%edi; call …
    .passes_other = {{0x31, 0xff, 0xe8, 0, 0, 0, 0, 0xc3}, 7},
    // jmp *%rax; what is no instruction; jmp to itself
    .not_followed = {{{0xff, 0xe0}, 2}, {{0x06, 0x06}, 2}, {{0xeb, 0xfe}, 2}},
    // lea 8(%rsp),%rdi; call …; mov 8(%rsp),%rax; movb $1,(%rax)
    .unset = {{0x48, 0x8d, 0x7c, 0x24, 0x08, 0xe8, 0, 0, 0, 0, 0x48, 0x8b, 0x44, 0x24, 0x08, 0xc6,
               0x00, 0x01},
              15,
              10},
    // The same with a check behind the call, which replaces it: test %eax,%eax; jns +9;
    // movq $0,8(%rsp)
    .unset_or_replaced = {{0x48, 0x8d, 0x7c, 0x24, 0x08, 0xe8, 0,    0,    0,   0, 0x85,
                           0xc0, 0x79, 0x09, 0x48, 0xc7, 0x44, 0x24, 0x08, 0,   0, 0,
                           0,    0x48, 0x8b, 0x44, 0x24, 0x08, 0xc6, 0x00, 0x01},
                          28,
                          10},
    // lea 8(%rsp),%rdi; call …; mov 8(%rsp),%rdi; call …
    .unset_and_passed = {{0x48, 0x8d, 0x7c, 0x24, 0x08, 0xe8, 0, 0, 0, 0,
                          0x48, 0x8b, 0x7c, 0x24, 0x08, 0xe8, 0, 0, 0, 0},
                         20,
                         10},
    // loop: call …; cmp $-1,%rax; jne loop; call …
    .loops = {{0xe8, 0, 0, 0, 0, 0x48, 0x83, 0xf8, 0xff, 0x75, 0xf5, 0xe8, 0, 0, 0, 0}, 16, 5},
};

TEST_CASE("a loop on the way to the end: what it changes is unknown behind it") {
  // test %rax,%rax; jne end; xor %ecx,%ecx; loop: add $1,%ecx; cmp $100,%ecx; jne loop; call …
  Program program{{{0x48, 0x85, 0xc0, 0x75, 0x0f, 0x31, 0xc9, 0x83, 0xc1, 0x01, 0x83,
                    0xf9, 0x64, 0x75, 0xf8, 0xe8, 0,    0,    0,    0,    0xc3}}};
  CHECK(program.crash_at(20, false).only_on_failure);
  CHECK_FALSE(program.crash_at(20, false).regardless);
  // The same without a check: xor %ecx,%ecx; loop: …; cmp $3,%ecx; jne end; call …; end: ret
  Program counted{{{0x31, 0xc9, 0x83, 0xc1, 0x01, 0x83, 0xf9, 0x64, 0x75, 0xf8, 0x83,
                    0xf9, 0x03, 0x75, 0x05, 0xe8, 0,    0,    0,    0,    0xc3}}};
  CHECK(counted.crash_at(20, false).regardless);  // 3 is not excluded
}

TEST_CASE("a failure that a function passes on as its own is its caller's result") {
  // test %rax,%rax; jne +3; xor %eax,%eax; ret; ret
  const std::vector<std::uint8_t> checks{0x48, 0x85, 0xc0, 0x75, 0x03, 0x31, 0xc0, 0xc3, 0xc3};
  const auto called_by = [&](std::uint32_t active, std::vector<std::uint8_t> caller) {
    return with_active(active, {.code = checks, .caller = std::move(caller)});
  };
  Program used = called_by(1, {0xc6, 0x40, 0x20, 0x01});  // movb $1,0x20(%rax)
  CHECK(used.crash_at(0, true, 0x20).derived);
  CHECK_FALSE(used.crash_at(0, true, 0x28).derived);
  // xor %edx,%edx; cmp $-1,%rax; cmove %rdx,%rax; ret
  Program selected =
      with_active(1, {.code = {0x31, 0xd2, 0x48, 0x83, 0xf8, 0xff, 0x48, 0x0f, 0x44, 0xc2, 0xc3},
                      .caller = {0xc6, 0x40, 0x20, 0x01}});
  selected.failed = ~std::uint64_t{0};
  CHECK(selected.crash_at(0, true, 0x20).derived);
  // mov %rax,0x8(%rbx); ret: a pointer. mov %al,0x8(%rbx); ret: a flag
  CHECK(called_by(2, {0x48, 0x89, 0x43, 0x08, 0xc3}).crash_at(0, true).kept);
  CHECK_FALSE(called_by(2, {0x88, 0x43, 0x08, 0xc3}).crash_at(0, true).kept);
  // mov %rax,%rdi; call …: a pointer. movslq %eax,%rdi; call …: a number
  CHECK(called_by(1, {0x48, 0x89, 0xc7, 0xe8, 0, 0, 0, 0}).crash_at(8, false).argument);
  CHECK_FALSE(called_by(1, {0x48, 0x63, 0xf8, 0xe8, 0, 0, 0, 0}).crash_at(8, false).argument);
  // cltq; movb $1,0x20(%rbx,%rax): an index
  Program index = called_by(1, {0x48, 0x98, 0xc6, 0x44, 0x03, 0x20, 0x01});
  CHECK_FALSE(index.crash_at(2, true, 0x20).derived);
}

TEST_CASE("a size that became 0 divides") {
  const auto derived = [](std::vector<std::uint8_t> code, std::size_t at) {
    Program program{{std::move(code)}};
    program.divided = true;
    return program.crash_at(at, true).derived;
  };
  // test %rax,%rax; setne %cl; movzbl %cl,%ecx; shl $6,%ecx; div %ecx
  CHECK(derived(
      {0x48, 0x85, 0xc0, 0x0f, 0x95, 0xc1, 0x0f, 0xb6, 0xc9, 0xc1, 0xe1, 0x06, 0xf7, 0xf1}, 12));
  // test %rax,%rax; mov $64,%ecx; jne +2; xor %ecx,%ecx; div %ecx
  CHECK(derived({0x48, 0x85, 0xc0, 0xb9, 0x40, 0, 0, 0, 0x75, 0x02, 0x31, 0xc9, 0xf7, 0xf1}, 12));
  // xor %ecx,%ecx; div %ecx
  CHECK_FALSE(derived({0x31, 0xc9, 0xf7, 0xf1}, 2));
}

TEST_CASE("the next call is told from later ones") {
  // call *…(%rip); call …; call …
  Program program{{{0xff, 0x15, 0, 0, 0, 0, 0xe8, 0, 0, 0, 0, 0xe8, 0, 0, 0, 0, 0xc3}}};
  CHECK(program.crash_at(11, false).at_once);
  CHECK_FALSE(program.crash_at(16, false).at_once);
}

TEST_CASE("the program crashed in a function that the active one has called last") {
  // mov %rax,%rdi; add $0x58,%rsp; jmp *0(%rip), where the function's address follows
  Program program{
      {{0x48, 0x89, 0xc7, 0x48, 0x83, 0xc4, 0x58, 0xff, 0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}}};
  const auto crash_in = [&](std::size_t function) {
    const std::uint64_t address = Program::address_of(program.code) + function;
    std::memcpy(program.code.data() + 13, &address, sizeof address);
    return program.crash_at(24, true, 0x10);
  };
  CHECK(crash_in(21).argument);
  CHECK_FALSE(crash_in(25).argument);  // in another one
}

}  // namespace oomrec::code_flow
