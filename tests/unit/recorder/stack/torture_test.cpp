// Every known shape of a stack, walked by us and by libunwind.
//
// Built once for each level of optimization, with and without frame pointers: the shapes of frames
// that matter come from the compiler.
#include <alloca.h>
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>
#include <csetjmp>
#include <csignal>

#include <algorithm>
#include <coroutine>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

#include "oracle.h"
#include "recorder/stack/stack.h"

#include <doctest/doctest.h>

namespace oomrec::stack {
namespace {

// Keeps the compiler from merging, inlining or turning calls into jumps.
#ifdef __clang__
#define APART [[gnu::noinline]]
#else
#define APART [[gnu::noinline, gnu::noclone]]
#endif
volatile unsigned g_sink;

struct Rounds {
  Rounds() : before(g_oracle) {}
  std::uint64_t stacks() const { return g_oracle.stacks - before.stacks; }
  std::uint64_t known() const { return g_oracle.known - before.known; }
  std::uint64_t different() const {
    return g_oracle.different - before.different + g_oracle.given_up - before.given_up;
  }
  const OracleCount before;
};

void started() {
  static const bool once = (start(), true);
  static_cast<void>(once);
}

// --- Frames of many sizes -----------------------------------------------------------------------

using Descend = void (*)(unsigned depth, unsigned path);
void descend(unsigned depth, unsigned path);

template <unsigned kBytes>
APART void plain(unsigned depth, unsigned path) {
  volatile char room[kBytes];
  room[0] = static_cast<char>(depth);
  descend(depth, path);
  g_sink = g_sink + static_cast<unsigned char>(room[0]);
}

APART void with_alloca(unsigned depth, unsigned path) {
  auto* room = static_cast<volatile char*>(alloca(16 + path % 300));
  room[0] = 1;
  descend(depth, path);
  g_sink = g_sink + static_cast<unsigned char>(room[0]);
}

APART void realigned(unsigned depth, unsigned path) {
  alignas(64) volatile double lanes[8] = {1, 2, 3};
  descend(depth, path);
  g_sink = g_sink + static_cast<unsigned>(lanes[path % 3]);
}

APART void realigned_with_alloca(unsigned depth, unsigned path) {
  alignas(32) volatile double lanes[4] = {1, 2, 3};
  auto* room = static_cast<volatile char*>(alloca(16 + path % 100));
  room[0] = 1;
  descend(depth, path);
  g_sink = g_sink + static_cast<unsigned>(lanes[path % 3]) + static_cast<unsigned char>(room[0]);
}

APART void many_arguments(unsigned depth, unsigned path, int a, int b, int c, int d, int e, int f) {
  descend(depth, path);
  g_sink = g_sink + static_cast<unsigned>(a + b + c + d + e + f);
}
APART void pushes_arguments(unsigned depth, unsigned path) {
  many_arguments(depth, path, 1, 2, 3, 4, 5, 6);
  g_sink = g_sink + 1;
}

const Descend kDescents[] = {plain<8>,    plain<100>,       plain<1000>, plain<5000>,
                             with_alloca, pushes_arguments, realigned,   realigned_with_alloca};

APART void descend(unsigned depth, unsigned path) {
  if (depth == 0) {
    compare_here();
  } else {
    kDescents[path % 8](depth - 1, path * 1103515245u + 12345u + depth);
  }
  g_sink = g_sink + 1;
}

TEST_CASE("recursion through frames of many shapes") {
  started();
  const Rounds rounds;
  for (unsigned i = 0; i < 12'000; ++i) descend(i % 23, i * 7919u);
  CHECK(rounds.stacks() == 12'000);
  CHECK(rounds.different() == 0);
  CHECK(rounds.known() > 300);
}

// Each level returns to one of two places in the same frame: stacks that differ in one return
// address.
APART void rungs(unsigned depth, unsigned path) {
  if (depth == 0) {
    compare_here();
  } else if ((path & 1) != 0) {
    rungs(depth - 1, path >> 1);
    g_sink = g_sink + 1;
  } else {
    rungs(depth - 1, path >> 1);
    g_sink = g_sink + 2;
  }
}

TEST_CASE("stacks that share all but one return address, wherever that is") {
  started();
  const Rounds rounds;
  for (const unsigned inner : {0u, 1u, 7u, 30u}) {    // rungs inside those that change,
    for (const unsigned outer : {0u, 1u, 7u, 30u}) {  // and outside
      for (unsigned i = 0; i < 400; ++i) {
        const unsigned gray = (i ^ i >> 1) % (outer == 7 ? 64 : 4);
        rungs(inner + 6 + outer, inner == 30 ? gray : gray << inner);
      }
    }
  }
  CHECK(rounds.stacks() == 16 * 400);
  CHECK(rounds.different() == 0);
  CHECK(rounds.known() > 2'000);
}

APART void reached_by_a_jump() {
  compare_here();
  g_sink = g_sink + 1;
}
APART void reached_by_another_jump() {
  compare_here();
  g_sink = g_sink + 2;
}
APART void jumps(unsigned path) {
  return path % 2 == 0 ? reached_by_a_jump() : reached_by_another_jump();
}
APART void jumps_to_jump(unsigned path) { return jumps(path / 2); }
APART void calls_jumps(unsigned depth, unsigned path) {
  if (depth != 0) {
    calls_jumps(depth - 1, path);
  } else if (path % 3 == 0) {
    jumps(path);
  } else {
    jumps_to_jump(path);
  }
  g_sink = g_sink + 1;
}

TEST_CASE("tail calls, whose callers are not on the stack") {
  started();
  const Rounds rounds;
  for (unsigned i = 0; i < 3'000; ++i) calls_jumps(i % 5, i * 7919u % 1000);
  CHECK(rounds.stacks() == 3'000);
  CHECK(rounds.different() == 0);
  CHECK(rounds.known() > 2'000);
}

TEST_CASE("too many frames: the innermost 512 are kept") {
  started();
  const Rounds rounds;
  for (unsigned depth : {200u, 250u, 255u, 256u, 257u, 300u, 600u}) descend(depth, depth);
  CHECK(rounds.stacks() == 7);
  CHECK(rounds.different() == 0);
  CHECK(g_oracle.deepest == session::kMaxFrames);
}

// --- Exceptions and jumps -----------------------------------------------------------------------

struct ComparesWhenDestroyed {
  ~ComparesWhenDestroyed() { compare_here(); }
};
struct ComparesWhenMade : std::runtime_error {
  ComparesWhenMade() : std::runtime_error("made") { compare_here(); }
};

APART void throws(unsigned depth) {
  const ComparesWhenDestroyed guard;
  if (depth == 0) throw ComparesWhenMade{};
  throws(depth - 1);
  g_sink = g_sink + 1;
}
APART void rethrows(unsigned depth) {
  try {
    throws(depth);
  } catch (const std::exception&) {
    compare_here();
    throw;
  }
}

TEST_CASE("exceptions: during the throw, in destructors, in handlers") {
  started();
  const Rounds rounds;
  for (unsigned i = 0; i < 300; ++i) {
    try {
      rethrows(i % 10);
    } catch (const std::exception&) {
      compare_here();
    }
  }
  CHECK(rounds.stacks() > 1500);
  CHECK(rounds.different() == 0);
}

std::jmp_buf g_jump;

// The call is the last instruction, so its return address lies after the function.
[[noreturn]] APART void compares_and_jumps() {
  compare_here();
  std::longjmp(g_jump, 1);
}
[[noreturn]] APART void ends_in_a_call(unsigned depth) {
  if (depth != 0) ends_in_a_call(depth - 1);
  compares_and_jumps();
}

TEST_CASE("functions that never return, and longjmp out of them") {
  started();
  const Rounds rounds;
  for (volatile unsigned i = 0; i < 500;) {
    if (setjmp(g_jump) == 0) ends_in_a_call(i % 7);
    compare_here();
    const unsigned next = i + 1;
    i = next;
  }
  CHECK(rounds.stacks() == 1000);
  CHECK(rounds.different() == 0);
}

// --- Through the C library ----------------------------------------------------------------------

int compares_and_orders(const void* a, const void* b) {
  compare_here();
  return *static_cast<const int*>(a) - *static_cast<const int*>(b);
}

TEST_CASE("callbacks of qsort and std::sort") {
  started();
  const Rounds rounds;
  std::vector<int> values(64);
  for (unsigned i = 0; i < 5; ++i) {
    for (int& value : values) value = std::rand() % 100;
    std::qsort(values.data(), values.size(), sizeof(int), compares_and_orders);
    for (int& value : values) value = std::rand() % 100;
    std::sort(values.begin(), values.end(), [](int a, int b) {
      compare_here();
      return a < b;
    });
  }
  CHECK(rounds.stacks() > 1000);
  CHECK(rounds.different() == 0);
}

// --- Other stacks -------------------------------------------------------------------------------

ucontext_t g_main_context, g_coroutine_context;

APART void coroutine_body(unsigned depth) {
  for (;; ++depth) {
    descend(depth % 12, depth);
    swapcontext(&g_coroutine_context, &g_main_context);
  }
}

TEST_CASE("coroutines with separate stacks") {
  started();
  const Rounds rounds;
  constexpr std::size_t kBytes = 256 * 1024;
  void* stack = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  getcontext(&g_coroutine_context);
  g_coroutine_context.uc_stack.ss_sp = stack;
  g_coroutine_context.uc_stack.ss_size = kBytes;
  g_coroutine_context.uc_link = nullptr;
  makecontext(&g_coroutine_context, reinterpret_cast<void (*)()>(coroutine_body), 1, 3u);
  for (unsigned i = 0; i < 500; ++i) {
    swapcontext(&g_main_context, &g_coroutine_context);
    compare_here();
  }
  CHECK(rounds.stacks() == 1000);
  CHECK(rounds.different() == 0);
  munmap(stack, kBytes);
}

struct Task {
  struct promise_type {
    Task get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() {
      compare_here();
      return {};
    }
    std::suspend_always final_suspend() noexcept {
      compare_here();
      return {};
    }
    std::suspend_always yield_value(unsigned) { return {}; }
    void return_void() {}
    void unhandled_exception() { std::abort(); }
  };
  std::coroutine_handle<promise_type> handle;
};
Task counts(unsigned last) {
  for (unsigned i = 0; i < last; ++i) {
    descend(i % 5, i);
    co_yield i;
  }
}

TEST_CASE("C++20 coroutines") {
  started();
  const Rounds rounds;
  const Task task = counts(300);
  while (!task.handle.done()) task.handle.resume();
  task.handle.destroy();
  CHECK(rounds.stacks() == 302);
  CHECK(rounds.different() == 0);
}

TEST_CASE("threads") {
  started();
  const Rounds rounds;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (unsigned i = 0; i < 400; ++i) descend(i % 17, i * 31 + t);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(rounds.stacks() == 1600);
  CHECK(rounds.different() == 0);
}

// --- Signals ------------------------------------------------------------------------------------

void compares_in_handler(int) { descend(3, g_sink); }

struct Handler {
  Handler(int number, int flags) : number_(number) {
    struct sigaction action {};
    action.sa_handler = compares_in_handler;
    action.sa_flags = flags | SA_RESTART;
    sigaction(number, &action, &before_);
  }
  ~Handler() { sigaction(number_, &before_, nullptr); }

 private:
  const int number_;
  struct sigaction before_ {};
};

APART void raises(unsigned depth, int number) {
  if (depth == 0) {
    std::raise(number);
  } else {
    raises(depth - 1, number);
  }
  g_sink = g_sink + 1;
}

TEST_CASE("signal handlers, on the same and on an alternate stack") {
  started();
  const Rounds rounds;
  std::vector<char> room(256 * 1024);
  const stack_t alternate{room.data(), 0, room.size()};
  sigaltstack(&alternate, nullptr);
  {
    const Handler same(SIGUSR1, 0);
    const Handler own(SIGUSR2, SA_ONSTACK);
    for (unsigned i = 0; i < 300; ++i) {
      raises(i % 9, SIGUSR1);
      raises(i % 9, SIGUSR2);
    }
  }
  const stack_t none{nullptr, SS_DISABLE, 0};
  sigaltstack(&none, nullptr);
  CHECK(rounds.stacks() == 600);
  CHECK(rounds.different() == 0);
}

APART unsigned busy(unsigned i) {
  char text[64];
  std::snprintf(text, sizeof text, "%u %g", i, i * 0.5);  // through the PLT and back
  alignas(32) volatile double lanes[4] = {1};
  return static_cast<unsigned>(std::strlen(text)) + static_cast<unsigned>(lanes[0]);
}

#ifdef __x86_64__
// Makes the CPU trap (SIGTRAP) after each instruction, by the trap flag, bit 8.
[[gnu::always_inline]] inline void trap_each_instruction(bool yes) {
  if (yes) {
    asm volatile("pushfq\n\torq $0x100, (%%rsp)\n\tpopfq" ::: "memory", "cc");
  } else {
    asm volatile("pushfq\n\tandq $~0x100, (%%rsp)\n\tpopfq" ::: "memory", "cc");
  }
}

#endif

// GCC's CFI is wrong for the last two instructions of a realigned function (it says that bp is
// still saved where bp pointed), so no unwinder can continue.
void check_few_given_up(const Rounds& rounds) {
  CHECK(g_oracle.different == rounds.before.different);
  CHECK(g_oracle.given_up - rounds.before.given_up < rounds.stacks() / 50);
}

TEST_CASE("a signal at any instruction: prologues, epilogues, the PLT") {
  started();
  g_sink = g_sink + busy(0);  // binds its calls: libunwind is wrong there on some machines
  const Rounds rounds;
  {
    const Handler handler(SIGALRM, 0);
    const itimerval often{{0, 200}, {0, 200}};
    setitimer(ITIMER_REAL, &often, nullptr);
    for (unsigned i = 0; rounds.stacks() < 800 && i < 5'000'000; ++i) g_sink = g_sink + busy(i);
    const itimerval never{};
    setitimer(ITIMER_REAL, &never, nullptr);
  }
  CHECK(rounds.stacks() >= 400);
  check_few_given_up(rounds);
}

#ifdef __x86_64__  // elsewhere a process cannot make its own processor trap
// function(argument) with a bp that is not an address, as in callers without a frame pointer.
extern "C" unsigned call_with_wild_bp(unsigned argument, unsigned (*function)(unsigned));
asm(".text\n"
    ".type call_with_wild_bp, @function\n"
    "call_with_wild_bp:\n"
    ".cfi_startproc\n"
    "  pushq %rbp\n"
    ".cfi_def_cfa_offset 16\n"
    ".cfi_offset %rbp, -16\n"
    "  movl $0x5956, %ebp\n"
    "  call *%rsi\n"
    "  popq %rbp\n"
    ".cfi_restore %rbp\n"
    ".cfi_def_cfa_offset 8\n"
    "  ret\n"
    ".cfi_endproc\n"
    ".size call_with_wild_bp, . - call_with_wild_bp\n");

TEST_CASE("a signal at each instruction") {
  started();
  const Rounds rounds;
  {
    const Handler handler(SIGTRAP, 0);
    for (unsigned i = 1; i <= 4; ++i) {
      trap_each_instruction(true);
      g_sink = g_sink + call_with_wild_bp(i, busy);
      trap_each_instruction(false);
    }
  }
  CHECK(rounds.stacks() >= 1000);
  check_few_given_up(rounds);
}
#endif

// --- Libraries ----------------------------------------------------------------------------------

TEST_CASE("two libraries alternate at one address") {
  started();
  const Rounds rounds;
  const char* const names[] = {LIBRARY_A, LIBRARY_B};
  unsigned same_address = 0;
  void* last = nullptr;
  for (unsigned i = 0; i < 200; ++i) {
    void* library = dlopen(names[i % 2], RTLD_NOW);
    REQUIRE(library != nullptr);
    void* entry = dlsym(library, "library_entry");
    same_address += entry == last;
    last = entry;
    reinterpret_cast<void (*)(void (*)(unsigned, unsigned))>(entry)(descend);
    dlclose(library);
    if (i < 150) {
      on_modules_unloaded(OutsideHooks::in_hook());
    } else {  // like ticks
      for (unsigned tick = 0; tick < 32; ++tick) check_next_module(OutsideHooks::in_hook());
    }
  }
  CHECK(rounds.stacks() == 200);
  CHECK(same_address > 100);
  CHECK(rounds.different() == 0);
}

struct Walked {
  static constexpr unsigned kMost = 64;

  NativeFrame frames[kMost];
  unsigned count = 0;
  bool truncated = false;

  APART void walk() {
    static auto* const thread = static_cast<ThreadStacks*>(std::calloc(1, sizeof(ThreadStacks)));
    Registers here;
    machine::read_registers(here.pc, here.sp, here.bp);
    here.exact = false;
    count = unwind(OutsideHooks::in_hook(), here, *thread, frames, kMost, &truncated);
  }
};

Walked g_while_binding;
void walks_while_binding() {
#ifdef __x86_64__  // elsewhere glibc's CFI for the binding is wrong, and libunwind goes by it
  compare_here();
#endif
  g_while_binding.walk();
}

APART void binds(void (*calls)(unsigned), Walked& before) {
  before.walk();
  calls(5);
  g_sink = g_sink + 1;
}

TEST_CASE("the first call through the PLT, from inside the loader") {
  started();
  const Rounds rounds;
  void* library = dlopen(LIBRARY_LAZY, RTLD_LAZY);
  REQUIRE(library != nullptr);
  *static_cast<void (**)()>(dlsym(library, "g_on_resolve")) = walks_while_binding;
  Walked before;
  binds(reinterpret_cast<void (*)(unsigned)>(dlsym(library, "calls_lazily")), before);
#ifdef __x86_64__
  CHECK(rounds.stacks() == 1);
#endif
  CHECK(rounds.different() == 0);

  // The frames outside are those of the walk before: the first is walk()'s, then binds().
  CHECK_FALSE(before.truncated);
  CHECK_FALSE(g_while_binding.truncated);
  REQUIRE(before.count > 3);
  REQUIRE(g_while_binding.count > before.count + 6);
  const NativeFrame* const outer =
      g_while_binding.frames + g_while_binding.count - (before.count - 1);
  CHECK(outer[0].sp == before.frames[1].sp);
  for (unsigned i = 1; i < before.count - 1; ++i) {
    CHECK(outer[i].pc == before.frames[i + 1].pc);
    CHECK(outer[i].sp == before.frames[i + 1].sp);
    CHECK_FALSE(outer[i].guessed);
  }
}

}  // namespace
}  // namespace oomrec::stack
