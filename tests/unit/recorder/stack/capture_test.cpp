// From a stack to a node of the session's trie: capture() and interning, on a real session.
#include "recorder/stack/capture.h"
#include "common/machine/page.h"

#include <dlfcn.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "common/system/syscalls.h"
#include "recorder/session/writer.h"
#include "recorder/stack/odd_frames.h"
#include "recorder/stack/stack.h"
#include "recorder/stack/unwind.h"
#include "recorder/stack/walk_cache.h"

#include <doctest/doctest.h>

namespace oomrec::stack {
namespace {

const InHook kHook = OutsideHooks::in_hook();
volatile unsigned g_sink;

void started() {
  static const bool once = [] {
    REQUIRE(session::g_session.create(kHook, {.session_directory = "/dev/shm"}));
    session::g_session.remove_file(kHook);
    start();
    set_own_code({});  // the recorder is linked into this program, so no code counts as "ours"
    return true;
  }();
  static_cast<void>(once);
}

ThreadStacks& thread_stacks() {
  static thread_local auto* mine = new ThreadStacks{};
  return *mine;
}

std::uint32_t group_named(std::uint32_t argument) {
  return intern(kHook, 0, session::special_frame(session::SpecialFrame::thread_group, argument));
}

std::vector<std::uint64_t> frames_of(std::uint32_t node) {
  std::vector<std::uint64_t> frames;
  session::g_session.view().walk(node, [&](std::uint64_t frame) { frames.push_back(frame); });
  return frames;
}

std::uint32_t captured(unsigned depth, std::uint32_t group);
[[gnu::noinline]] std::uint32_t capture_at(unsigned depth, std::uint32_t group) {
  const std::uint32_t node = captured(depth, group);
  g_sink = g_sink + 1;
  return node;
}
[[gnu::noinline]] std::uint32_t captured(unsigned depth, std::uint32_t group) {
  const std::uint32_t node =
      depth == 0 ? capture(kHook, thread_stacks(), group) : capture_at(depth - 1, group);
  g_sink = g_sink + 1;
  return node;
}

TEST_CASE("equal stacks are one node, and its chain ends in the thread's group") {
  started();
  const std::uint32_t group = group_named(11);
  std::set<std::uint32_t> nodes;
  for (unsigned round = 0; round < 20; ++round) nodes.insert(capture_at(3, group));
  CHECK(nodes.size() == 1);
  CHECK(capture_at(4, group) != *nodes.begin());

  const std::vector<std::uint64_t> frames = frames_of(*nodes.begin());
  REQUIRE(frames.size() > 10);
  CHECK(session::special_of(frames.back()) == session::SpecialFrame::thread_group);
  CHECK(session::argument_of(frames.back()) == 11);
  CHECK(capture_at(3, group_named(13)) != *nodes.begin());
}

std::uint64_t g_hook_returns_to;

[[gnu::noinline]] void called_by_the_real_function() {
  const HookScope scope;  // entered like in a hook
  g_sink = g_sink + !scope.outermost();
}
[[gnu::noinline]] std::uint32_t hook(std::uint32_t group) {
  const HookScope scope;
  g_hook_returns_to = reinterpret_cast<std::uint64_t>(__builtin_return_address(0));
  called_by_the_real_function();
  const InHook in_hook = scope.in_hook();
  const std::uint32_t node = capture(in_hook, thread_stacks(), group);
  scope.leave_recorder();
  return node;
}

TEST_CASE("a stack begins where the program called the hook") {
  started();
  const std::uint32_t group = group_named(43);
  const std::vector<std::uint64_t> frames = frames_of(hook(group));
  const ModuleRef here = module_at(kHook, g_hook_returns_to);
  CHECK(frames[0] == session::native_frame(here.id, g_hook_returns_to - here.base));
  const std::vector<std::uint64_t> outside = frames_of(capture_at(0, group));
  REQUIRE(frames.size() > 5);
  // From main() outwards both have the same call sites.
  CHECK(std::equal(frames.end() - 5, frames.end(), outside.end() - 5));
}

// Captures at the end of a random path, with the thread's memo and without: both must be one node.
[[gnu::noinline]] bool same_with_and_without_memo(std::uint32_t group, ThreadStacks& no_memo) {
  std::uint32_t nodes[2];
  volatile unsigned both = 2;  // one loop, so that both use the same call of capture()
  for (unsigned i = 0; i < both; ++i)
    nodes[i] = capture(kHook, i == 0 ? thread_stacks() : no_memo, group);
  reset_thread(kHook, no_memo);
  return nodes[0] == nodes[1];
}
bool wander(unsigned depth, unsigned path, std::uint32_t group, ThreadStacks& no_memo);
template <unsigned kWay>
[[gnu::noinline]] bool way(unsigned depth, unsigned path, std::uint32_t group, ThreadStacks& none) {
  volatile char room[8 + 24 * kWay];
  room[0] = static_cast<char>(path);
  const bool same = wander(depth - 1, path / 4, group, none);
  return same && room[0] == static_cast<char>(path);
}
bool wander(unsigned depth, unsigned path, std::uint32_t group, ThreadStacks& none) {
  if (depth == 0) return same_with_and_without_memo(group, none);
  switch (path % 4) {
    case 0:
      return way<0>(depth, path, group, none);
    case 1:
      return way<1>(depth, path, group, none);
    case 2:
      return way<1>(depth, path + 2, group, none);  // frames of the same size as the last one's
    default:
      return way<2>(depth, path, group, none);
  }
}

TEST_CASE("a stack has the same node whatever the thread walked before") {
  started();
  const auto none = std::make_unique<ThreadStacks>();
  const std::uint32_t groups[] = {group_named(29), group_named(31)};
  unsigned random = 1;
  unsigned different = 0;
  for (unsigned round = 0; round < 3000; ++round) {
    random = random * 1664525 + 1013904223;
    const unsigned depth = 1 + (random >> 28);
    if (round % 500 == 499) invalidate_caches();
    different += !wander(depth, random >> 8, groups[round / 7 % 2], *none);
  }
  CHECK(different == 0);
}

TEST_CASE("a module is entered once, with its path and build-id") {
  started();
  const auto here = reinterpret_cast<std::uint64_t>(&frames_of);
  const ModuleRef ref = module_at(kHook, here);
  REQUIRE(ref.id != 0);
  CHECK(module_at(kHook, here + 1).id == ref.id);
  const session::Module& module = session::g_session.modules.at(ref.id);
  char path[4096] = {};
  REQUIRE(readlink("/proc/self/exe", path, sizeof path - 1) > 0);
  CHECK(session::g_session.view().string(module.path) == path);
  CHECK(module.start <= here);
  CHECK(here < module.end);
  CHECK(module.build_id_bytes == 20);

  const ModuleRef libc = module_at(
      kHook, reinterpret_cast<std::uint64_t>(dlsym(RTLD_DEFAULT, "gnu_get_libc_version")));
  REQUIRE(libc.id != 0);
  CHECK(libc.id != ref.id);
  CHECK(session::g_session.view()
            .string(session::g_session.modules.at(libc.id).path)
            .ends_with("libc.so.6"));
  CHECK(module_at(kHook, 0x1234).id == 0);
}

TEST_CASE("too deep a stack keeps its innermost frames and is marked as truncated") {
  started();
  auto& truncated = session::g_session.header().truncated_stacks;
  const std::uint64_t before = truncated.load();
  const std::vector<std::uint64_t> frames = frames_of(capture_at(400, group_named(17)));
  CHECK(truncated.load() == before + 1);
  REQUIRE(frames.size() == session::kMaxFrames + 2);
  CHECK(session::special_of(frames[session::kMaxFrames]) == session::SpecialFrame::truncated);
}

TEST_CASE("a stack without frames leaves no other group in the memo") {
  started();
  const std::uint32_t group = group_named(41);
  capture_at(400, group_named(37));
  set_own_code({0, ~std::uint64_t{0}});
  capture_at(1, group);
  set_own_code({});
  const std::vector<std::uint64_t> frames = frames_of(capture_at(400, group));
  CHECK(session::argument_of(frames.back()) == 41);
}

TEST_CASE("threads intern the same stacks to the same nodes") {
  started();
  const std::uint32_t group = group_named(19);
  constexpr unsigned kThreads = 4, kFrames = 20'000;
  std::vector<std::uint32_t> nodes[kThreads];
  std::vector<std::thread> threads;
  for (auto& mine : nodes) {
    threads.emplace_back([&mine, group] {
      for (unsigned i = 0; i < kFrames; ++i)
        mine.push_back(intern(kHook, group, 1'000'003u * (i + 1)));
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::set<std::uint32_t> distinct(nodes[0].begin(), nodes[0].end());
  CHECK(distinct.size() == kFrames);
  CHECK(distinct.count(0) == 0);
  for (const auto& mine : nodes) CHECK(mine == nodes[0]);
}

TEST_CASE("a thread that may not make system calls uses only the caches") {
  started();
  const pid_t child = fork();  // the ban cannot be lifted
  if (child == 0) {
    const std::uint32_t group = group_named(23);
    const bool known = capture_at(2, group) != group;
    system::g_filters = 1;
    bool still = capture_at(5, group) != group;
    bool empty = false;
    std::thread([&] {
      empty = capture_at(2, group) != 0 && thread_stacks().ranges[0].high == 0;
    }).join();
    _exit(known && still && empty ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

// Compares libunwind, with our list of modules, and our rules, frame by frame.
[[gnu::noinline]] unsigned steps_agree() {
  Registers here;
  machine::read_registers(here.pc, here.sp, here.bp);
  Walk walk(kHook, thread_stacks(), here.sp);
  FrameState frame = FrameState::of(here);
  PackedRule rule;
  unsigned agreed = 0;
  // libunwind's context is of an inner function
  if (walk.step(kHook, frame, rule) != Outcome::stepped) return 0;
  for (;;) {
    FrameState odd{};
    const StackRange& own = thread_stacks().ranges[0];
    const bool stepped = step_odd_frame(kHook, thread_stacks(), own, frame, odd);
    if (walk.step(kHook, frame, rule) != Outcome::stepped) return agreed;
    if (!stepped || odd.pc != frame.pc || odd.sp != frame.sp) return 0;
    ++agreed;
  }
}

TEST_CASE("the fallback unwinder uses our list of modules") {
  started();
  CHECK(steps_agree() >= 4);  // at least main and the C library below it
}

// Captures the frames of a signal's context in its handler.
std::uint64_t g_interrupted[64];
std::uint32_t g_interrupted_count;
Registers g_registers;
std::vector<Activation> g_earlier;
Progress g_progress;
void capture_from_handler(int, siginfo_t*, void* context) {
  const auto [pc, sp, bp, link] =
      machine::interrupted_registers(*static_cast<ucontext_t*>(context));
  g_registers = {pc, sp, bp, true, link};
  g_interrupted_count = capture_interrupted(kHook, thread_stacks(), g_registers, g_interrupted,
                                            g_earlier, g_progress);
}

TEST_CASE("a signal handler's stack continues into the interrupted code") {
  started();
  struct sigaction action {};
  action.sa_sigaction = capture_from_handler;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGUSR1, &action, nullptr);

  std::vector<std::uint64_t> expected = frames_of(capture(kHook, thread_stacks(), group_named(31)));
  raise(SIGUSR1);

  expected.pop_back();  // the group
  const std::vector<std::uint64_t> found(g_interrupted, g_interrupted + g_interrupted_count);
  REQUIRE(found.size() > 4);
  CHECK(session::is_exact(found.front()));
  // All frames outside of capture() and of this function, which is at another call.
  const auto callers = [&](const std::vector<std::uint64_t>& frames) {
    return std::search(frames.begin(), frames.end(), expected.begin() + 2, expected.end());
  };
  REQUIRE(expected.size() > 3);
  CHECK(callers(found) != found.end());
  // Cached entries are dropped, not mistaken for the new module.
  CHECK(frames_of(capture_at(3, group_named(31))).size() > expected.size());
}

// Its caller is the first of these activations.
[[gnu::noinline]] void note_activations() {
  g_earlier.resize(16);
  g_earlier.resize(current_activations(kHook, thread_stacks(), g_earlier));
}
[[gnu::noinline]] void note_in_a_function() {
  note_activations();
  asm volatile("");
}

TEST_CASE("a crash's stack says which activations have ended since") {
  started();
  struct sigaction action {};
  action.sa_sigaction = capture_from_handler;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGUSR1, &action, nullptr);

  note_activations();
  REQUIRE(g_earlier.size() > 3);
  raise(SIGUSR1);
  const std::uint32_t here = g_progress.ended;  // functions of ours between capture and this one
  CHECK(here < 3);
  CHECK(g_progress.at != 0);
  CHECK_FALSE(g_progress.exact);  // this function has called raise()
  note_in_a_function();
  raise(SIGUSR1);
  CHECK(g_progress.ended == here + 1);
  // The first activation's caller is unknown: so is whether it is left.
  g_earlier.resize(1);
  raise(SIGUSR1);
  CHECK(g_progress.ended == 1);
  g_earlier.clear();
}

TEST_CASE("a damaged stack ends the walk, not the program") {
  started();
  raise(SIGUSR1);  // for its registers
  std::uint64_t frames[8];
  Registers at = g_registers;
  at.sp = 8;
  Progress progress;
  CHECK(capture_interrupted(kHook, thread_stacks(), at, frames, {}, progress) == 1);
  at.pc = at.link = 0;
  CHECK(capture_interrupted(kHook, thread_stacks(), at, frames, {}, progress) == 1);
}

TEST_CASE("a stack ends with its mapping, if sp is near") {
  constexpr std::uint64_t kBytes = 1 << 20;
  const std::uint64_t kGuard = machine::page_bytes();
  void* const mapped =
      mmap(nullptr, kGuard + kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(mapped != MAP_FAILED);
  const auto guard = reinterpret_cast<std::uint64_t>(mapped);
  const std::uint64_t low = guard + kGuard;
  mprotect(reinterpret_cast<void*>(low), kBytes, PROT_READ | PROT_WRITE);
  CHECK(is_beyond_stack(kHook, low + 100, low - 8));
  CHECK(is_beyond_stack(kHook, guard + 100, guard + 92));  // sp is outside, too
  CHECK_FALSE(is_beyond_stack(kHook, low + 100, low + 8));
  CHECK_FALSE(is_beyond_stack(kHook, low + 100, 16));
  CHECK_FALSE(is_beyond_stack(kHook, low + kBytes / 2, low - 8));
  munmap(mapped, kGuard + kBytes);
}

}  // namespace
}  // namespace oomrec::stack
