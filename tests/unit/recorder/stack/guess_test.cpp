// Frames without CFI: guessed on a stack that the program partly unmaps, and the outermost one of a
// coroutine.
#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cstring>
#include <thread>

#include "common/machine/generated_code.h"
#include "recorder/stack/stack.h"

#include <doctest/doctest.h>

// Calls `function` with `bp` in the frame pointer. It has no CFI: the way out of it is a guess.
#ifdef __aarch64__
asm(R"(
        .text
        .type   call_with_bp, @function
call_with_bp:
        stp     x29, x30, [sp, -16]!
        mov     x29, x1
        blr     x0
        ldp     x29, x30, [sp], 16
        ret
        .size   call_with_bp, . - call_with_bp
)");
#else
asm(R"(
        .text
        .type   call_with_bp, @function
call_with_bp:
        push    %rbp
        mov     %rsi, %rbp
        call    *%rdi
        pop     %rbp
        ret
        .size   call_with_bp, . - call_with_bp
)");
#endif
extern "C" void call_with_bp(void (*function)(), std::uint64_t bp);

#ifdef __x86_64__  // elsewhere its end is not recognized
// How a stack of Boost.Context begins: the function in rbx returns to where no call leads.
asm(R"(
        .text
        .type   enter_context, @function
enter_context:
        push    %rbx
        mov     %rdi, %rbx
        leaq    1f(%rip), %rbp
        push    %rbp
        jmp     *%rbx
1:      xor     %rdi, %rdi
        call    never_called
        hlt
        .size   enter_context, . - enter_context

        .type   enter_context_with_landing, @function
enter_context_with_landing:
        push    %rbx
        mov     %rdi, %rbx
        leaq    1f(%rip), %rbp
        push    %rbp
        jmp     *%rbx
1:      endbr64
        xor     %rdi, %rdi
        call    never_called
        hlt
        .size   enter_context_with_landing, . - enter_context_with_landing

        .type   never_called, @function
never_called:
        hlt
        .size   never_called, . - never_called
)");
extern "C" void enter_context(void (*function)());
extern "C" void enter_context_with_landing(void (*function)());
#endif

namespace oomrec::stack {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kStackBytes =
    64 * kPage;  // the coroutine's stack; above it, in the same mapping …
constexpr std::uint64_t kAboveBytes = 16 * kPage;  // … something else

const InHook kHook = OutsideHooks::in_hook();
constinit ThreadStacks g_stacks{};
constinit std::uint64_t g_bp = 0;
constinit ucontext_t g_main{}, g_coroutine{};

constexpr std::uint32_t kMostFrames = 64;

struct Walked {
  NativeFrame frames[kMostFrames];
  std::uint32_t count;
  bool truncated;

  bool guessed() const {
    for (std::uint32_t i = 0; i < count; ++i)
      if (frames[i].guessed) return true;
    return false;
  }
};
constinit Walked g_walked{};

[[gnu::noinline]] void walk() {
  Registers here;
  machine::read_registers(here.pc, here.sp, here.bp);
  g_walked.count = unwind(kHook, here, g_stacks, g_walked.frames, kMostFrames, &g_walked.truncated);
}

[[gnu::noinline]] void body() {
  for (;;) {
    call_with_bp(walk, g_bp);
    swapcontext(&g_coroutine, &g_main);
  }
}

struct Stack {
  Stack() {
    low = reinterpret_cast<std::uint64_t>(mmap(nullptr, kStackBytes + kAboveBytes,
                                               PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                                               -1, 0));
    above = low + kStackBytes;
    getcontext(&g_coroutine);
    g_coroutine.uc_stack.ss_sp = reinterpret_cast<void*>(low);
    g_coroutine.uc_stack.ss_size = kStackBytes;
    makecontext(&g_coroutine, body, 0);
  }
  ~Stack() {
    munmap(at(low), kStackBytes);  // the range above may be reused by now
    reset_thread(kHook, g_stacks);
  }
  static void* at(std::uint64_t address) { return reinterpret_cast<void*>(address); }

  // Makes a frame at `bp` that seems to be called from here.
  void plant(std::uint64_t bp) const { plant(bp, 0, reinterpret_cast<std::uint64_t>(&body) + 1); }
  void plant(std::uint64_t bp, std::uint64_t outer_bp, std::uint64_t pc) const {
    const std::uint64_t frame[2] = {outer_bp, pc};
    std::memcpy(at(bp), frame, sizeof frame);
  }
  const Walked& walk_with(std::uint64_t bp) const {
    g_bp = bp;
    swapcontext(&g_main, &g_coroutine);
    return g_walked;
  }

  std::uint64_t low, above;
};

}  // namespace

TEST_CASE("a guess reads only memory that is still mapped") {
  start();
  const Stack stack;
  const std::uint64_t bp = stack.above + 2 * kPage;
  stack.plant(bp);
  REQUIRE(stack.walk_with(bp).guessed());

  SUBCASE("unmapped") { munmap(Stack::at(stack.above), kAboveBytes); }
  bool is_ours = false;
  SUBCASE("unreadable") {
    is_ours = true;
    mprotect(Stack::at(stack.above), kAboveBytes, PROT_NONE);
  }
  SUBCASE("a frame across the end of the mapping") {
    munmap(Stack::at(bp + kPage), kPage);
    CHECK_FALSE(stack.walk_with(bp + kPage - 8).guessed());
    return;
  }
  CHECK_FALSE(stack.walk_with(bp).guessed());
  CHECK(g_walked.truncated);

  SUBCASE("partly mapped again") {
    constexpr int kUsable = PROT_READ | PROT_WRITE;
    constexpr int kHere = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
    if (is_ours) {
      mprotect(Stack::at(bp), kPage, kUsable);
    } else if (mmap(Stack::at(bp), kPage, kUsable, kHere, -1, 0) != Stack::at(bp)) {
      return;  // another thread was faster
    }
    stack.plant(bp);
    CHECK(stack.walk_with(bp).guessed());
  }
}

// As V8 does: several frames one after the other in memory of no module, then one of a module.
TEST_CASE("compiled code is followed if its frames lead to a module's code") {
  start();
  const Stack stack;
  const std::uint64_t compiled = stack.low + 8;  // of no module
  const auto frame = [&](std::uint64_t number) { return stack.above + number * 64; };
  stack.plant(frame(0), frame(1), compiled);
  stack.plant(frame(1), frame(2), compiled + 1);
  stack.plant(frame(2));
  const auto guesses = [&] {
    const Walked& walked = stack.walk_with(frame(0));
    std::uint32_t count = 0;
    for (std::uint32_t i = 0; i < walked.count; ++i) count += walked.frames[i].guessed ? 1 : 0;
    return count;
  };
  CHECK(guesses() == 3);

  SUBCASE("they lead nowhere") { stack.plant(frame(2), frame(1), compiled); }
  SUBCASE("inwards") { stack.plant(frame(1), frame(0), compiled); }
  SUBCASE("to memory that is not there") { stack.plant(frame(1), 8, compiled); }
  SUBCASE("to the end") { stack.plant(frame(2), 0, 0); }
  SUBCASE("askew") { stack.plant(frame(1), frame(2) + 1, compiled); }
  SUBCASE("too far") {
    for (std::uint64_t i = 0; i < 100; ++i) stack.plant(frame(i), frame(i + 1), compiled);
    stack.plant(frame(100));
  }
  CHECK(guesses() == 0);
  CHECK(g_walked.truncated);
}

#ifdef __x86_64__  // elsewhere a call does not store its return address
// Machine code of no module that calls the function in rdi and keeps no record.
class Generated {
 public:
  template <std::size_t kBytes>
  explicit Generated(const std::uint8_t (&code)[kBytes])
      : page_(mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    std::memcpy(page_, code, kBytes);
    mprotect(page_, kPage, PROT_READ | PROT_EXEC);
  }
  ~Generated() { munmap(page_, kPage); }
  Generated(const Generated&) = delete;
  Generated& operator=(const Generated&) = delete;
  [[gnu::always_inline]] void call(void (*function)()) const {
    reinterpret_cast<void (*)(void (*)())>(page_)(function);
  }

 private:
  void* page_;
};
// sub $0x78, %rsp; call *%rdi; add $0x78, %rsp; ret: bp is the caller's.
constexpr std::uint8_t kKeepsBp[] = {0x48, 0x83, 0xec, 0x78, 0xff, 0xd7,
                                     0x48, 0x83, 0xc4, 0x78, 0xc3};
// push %rbp; mov $8, %ebp; sub $0x70, %rsp; call *%rdi; add $0x70, %rsp; pop %rbp; ret
constexpr std::uint8_t kUsesBp[] = {0x55, 0xbd, 8,    0,    0,    0,    0x48, 0x83, 0xec,
                                    0x70, 0xff, 0xd7, 0x48, 0x83, 0xc4, 0x70, 0x5d, 0xc3};
// The same with a nop behind the call: how they end is not seen from there.
constexpr std::uint8_t kKeepsBpAndGoesOn[] = {0x48, 0x83, 0xec, 0x78, 0xff, 0xd7,
                                              0x90, 0x48, 0x83, 0xc4, 0x78, 0xc3};
constexpr std::uint8_t kUsesBpAndGoesOn[] = {0x55, 0xbd, 8,    0,    0,    0,    0x48,
                                             0x83, 0xec, 0x70, 0xff, 0xd7, 0x90, 0x48,
                                             0x83, 0xc4, 0x70, 0x5d, 0xc3};

// Leaves return addresses on the stack below the caller's frame.
[[gnu::noinline]] int leave_traces(int depth) {
  volatile int words[4] = {depth};
  return depth == 0 ? words[0] : leave_traces(depth - 1) + words[0];
}

// Its frame is found by bp: alloca.
[[gnu::noinline]] void call_generated(const Generated& code, int bytes) {
  auto* const room = static_cast<volatile char*>(__builtin_alloca(static_cast<std::size_t>(bytes)));
  room[0] = static_cast<char>(leave_traces(40));
  code.call(walk);
  room[bytes - 1] = 0;
}

void check_generated() {
  const Generated codes[] = {Generated{kKeepsBp}, Generated{kUsesBp}, Generated{kUsesBpAndGoesOn},
                             Generated{kKeepsBpAndGoesOn}};
  for (const Generated& code : codes) {
    call_generated(code, 48);
    const Walked generated = g_walked;
    walk();  // what is further out than call_generated()
    // The last code's bp is its caller's: where that keeps a record, it is taken for the code's
    // own.
    const bool may_skip = &code == &codes[3];
    CHECK_FALSE(generated.truncated);
    REQUIRE(generated.count > g_walked.count);
    const std::uint32_t between = generated.count - g_walked.count;  // the code, call_generated()
    REQUIRE((between == 2 || (may_skip && between == 1)));
    CHECK_FALSE(generated.frames[1].guessed);
    CHECK(generated.frames[2].guessed);
    for (std::uint32_t i = between + 2; i < generated.count; ++i)
      CHECK(generated.frames[i].pc == g_walked.frames[i - between].pc);
  }
}

TEST_CASE("code of no module that keeps no record is walked through") {
  start();
  check_generated();
  reset_thread(kHook, g_stacks);
  std::thread(check_generated).join();
  reset_thread(kHook, g_stacks);
}

TEST_CASE("code of no module is not walked through where no rules lead on") {
  start();
  const Stack stack;
  const Generated code(kUsesBpAndGoesOn);
  static const Generated* g_code = nullptr;
  g_code = &code;
  g_walked = {};
  makecontext(
      &g_coroutine,
      [] {
        const auto* const at = static_cast<volatile std::uint64_t*>(__builtin_frame_address(0));
        const_cast<volatile std::uint64_t*>(at)[1] = 8;  // no return address
        g_code->call(walk);
        setcontext(&g_main);
      },
      0);
  swapcontext(&g_main, &g_coroutine);
  CHECK(g_walked.truncated);
  CHECK_FALSE(g_walked.guessed());
}

constinit jmp_buf g_back = {};

void walk_and_leave() {
  walk();
  longjmp(g_back, 1);  // past code that would end the process
}

TEST_CASE("a stack of Boost.Context ends where its outermost function would return to") {
  start();
  for (void (*const enter)(void (*)()) : {enter_context, enter_context_with_landing}) {
    if (setjmp(g_back) == 0) enter(walk_and_leave);
    CHECK_FALSE(g_walked.truncated);
    CHECK_FALSE(g_walked.guessed());
    CHECK(g_walked.count == 3);
  }
}
#endif

}  // namespace oomrec::stack

#ifdef __x86_64__
TEST_CASE("the end of a function tells where its frame ends, and whether it has the caller's bp") {
  using oomrec::machine::epilogue_of;
  const std::uint8_t adds[] = {0x48, 0x83, 0xc4, 8, 0xc3};  // CPython's trampoline
  CHECK(epilogue_of(adds).frame_bytes == 16);
  CHECK_FALSE(epilogue_of(adds).has_bp);
  const std::uint8_t pops_bp[] = {0x5d, 0xc3};  // where it keeps frame records
  CHECK(epilogue_of(pops_bp).frame_bytes == 16);
  CHECK(epilogue_of(pops_bp).has_bp);
  CHECK(epilogue_of(pops_bp).bp_offset == 0);
  const std::uint8_t pops_others[] = {0x5b, 0x5d, 0x41, 0x5d, 0xc3};  // rbx, rbp, r13
  CHECK(epilogue_of(pops_others).frame_bytes == 32);
  CHECK(epilogue_of(pops_others).bp_offset == 8);
  const std::uint8_t goes_on[] = {0x5d, 0x90, 0xc3};
  CHECK(epilogue_of(goes_on).frame_bytes == 0);
}
#endif
