#define UNW_LOCAL_ONLY
#include "recorder/stack/self_check.h"

#include <fcntl.h>
#include <libunwind.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

#include "common/system/files.h"
#include "common/system/syscalls.h"
#include "common/system/text.h"
#include "recorder/stack/odd_frames.h"

namespace oomrec::stack {
namespace {

constexpr std::uint64_t kOracleEvery = 64;
constexpr std::uint64_t kPrinted = 10;

constinit SelfCheckCounts g_of_this_process{};

void count(std::atomic<std::uint64_t>& counter, std::uint64_t by = 1) noexcept {
  counter.fetch_add(by, std::memory_order_relaxed);
}

bool is_same(const NativeFrame& ours, const FrameState& frame) noexcept {
  return ours.pc == frame.pc && ours.sp == frame.sp && ours.exact == frame.exact &&
         ours.guessed == frame.guessed && (!ours.bp_matters || ours.bp == frame.bp);
}

void check_by_full_walk(InHook hook, const Registers& at, ThreadStacks& thread,
                        const NativeStack& stack) noexcept {
  Walk walk(hook, thread, at.sp);
  FrameState frame = FrameState::of(at);
  Outcome outcome = Outcome::stepped;
  std::uint32_t i = 0;
  for (; i < stack.count && outcome == Outcome::stepped; ++i) {
    const NativeFrame& ours = stack.frames[i];
    if (!is_same(ours, frame)) {
      return report_difference(hook, "a frame is not the full walk's", i, ours.pc, frame.pc);
    }
    PackedRule rule;
    outcome = walk.step(hook, frame, rule);
  }
  const bool full = stack.count == kWalkedFrames;
  if (i != stack.count || (outcome == Outcome::stepped && !full) ||
      (outcome == Outcome::outermost) == stack.truncated) {
    report_difference(hook, "the full walk ends elsewhere", i, stack.count,
                      static_cast<std::uint64_t>(outcome));
  }
}

struct Unwinder {
  unw_context_t context;
  unw_cursor_t cursor;

  std::uint64_t value_of(int number) noexcept {
    unw_word_t value = 0;
    return unw_get_reg(&cursor, number, &value) == 0 ? value : 0;
  }
  // Without call frame information libunwind guesses, too, and is no oracle.
  bool knows() noexcept {
    unw_proc_info_t info;
    return unw_get_proc_info(&cursor, &info) == 0;
  }
};
static_assert(sizeof(Unwinder) <= sizeof(ThreadStacks::unwinder));

// Skips our own frames.
bool find(Unwinder& unwinder, const NativeFrame& first) noexcept {
  constexpr unsigned kFramesBelow = 64;
  for (unsigned i = 0; i < kFramesBelow; ++i) {
    if (unwinder.value_of(UNW_REG_IP) == first.pc && unwinder.value_of(UNW_REG_SP) == first.sp)
      return true;
    if (unw_step(&unwinder.cursor) <= 0) return false;
  }
  return false;
}

// libunwind walks on into what the coroutines' common stack holds at the moment.
bool ends_coroutine(InHook hook, const NativeFrame& frame) noexcept {
  const std::uint64_t address = frame.exact ? frame.pc : frame.pc - 1;
  return loaded_module(module_slot_at(hook, address)).stack_switch.holds(address);
}

void check_by_libunwind(InHook hook, const Registers& at, ThreadStacks& thread,
                        const NativeStack& stack) noexcept {
  if (!has_stack_for_libunwind(hook, stack_bounds(hook, thread, at.sp)))
    return count(g_counts->oracle_ends);
  const std::uint32_t first = at.exact ? 1 : 0;  // a walk that begins here: libunwind is further in
  if (stack.count <= first) return count(g_counts->oracle_ends);
  Unwinder& unwinder = *reinterpret_cast<Unwinder*>(thread.unwinder);
  unw_getcontext(&unwinder.context);
  if (unw_init_local(&unwinder.cursor, &unwinder.context) != 0 ||
      !find(unwinder, stack.frames[first])) {
    return report_difference(hook, "libunwind does not find where the walk begins", first,
                             stack.frames[first].pc, 0);
  }
  count(g_counts->oracle_stacks);
  for (std::uint32_t i = first; i < stack.count; ++i) {
    const NativeFrame& ours = stack.frames[i];
    if (ours.guessed) return count(g_counts->oracle_ends);
    const std::uint64_t pc = unwinder.value_of(UNW_REG_IP);
    if (ours.pc != pc || ours.sp != unwinder.value_of(UNW_REG_SP))
      return report_difference(hook, "a frame is not libunwind's", i, ours.pc, pc);
    count(g_counts->oracle_frames);
    const bool last = i + 1 == stack.count;
    if (!unwinder.knows()) {
      if (!last) count(g_counts->oracle_ends);
      return;
    }
    const bool more = unw_step(&unwinder.cursor) > 0 && unwinder.value_of(UNW_REG_IP) != 0;
    if (last && (stack.truncated || ends_coroutine(hook, ours)))
      return count(g_counts->oracle_ends);
    if (more == last) {
      return report_difference(hook, last ? "libunwind has more frames" : "libunwind ends earlier",
                               i, ours.pc, unwinder.value_of(UNW_REG_IP));
    }
  }
}

}  // namespace

constinit SelfCheckCounts* g_counts = &g_of_this_process;

void start_self_check(InHook) noexcept {
  const char* const path = std::getenv("OOMREC_SELF_CHECK");
  if (path == nullptr) return;
  const system::File file = system::File::open(path, O_RDWR);
  const long mapped = system::call(SYS_mmap, nullptr, sizeof(SelfCheckCounts),
                                   PROT_READ | PROT_WRITE, MAP_SHARED, file.descriptor(), 0);
  if (mapped > 0) g_counts = reinterpret_cast<SelfCheckCounts*>(mapped);
}

[[gnu::noinline]] void check_native(InHook hook, const Registers& at, ThreadStacks& thread,
                                    const NativeStack& stack) noexcept {
  const std::uint64_t number = g_counts->stacks.fetch_add(1, std::memory_order_relaxed);
  count(g_counts->frames, stack.count);
  count(g_counts->reusing, stack.reused != 0 ? 1 : 0);
  count(g_counts->reused_frames, stack.reused);
  check_by_full_walk(hook, at, thread, stack);
  if (number % kOracleEvery == 0) check_by_libunwind(hook, at, thread, stack);
}

[[gnu::noinline]] void check_cached_chain(InHook hook, const Registers& at, ThreadStacks& thread,
                                          std::uint64_t chain) noexcept {
  count(g_counts->cached_chains);
  Walk walk(hook, thread, at.sp);
  FrameState frame = FrameState::of(at);
  FreshFrame* const frames = thread.native.fresh;  // of no walk now
  std::uint32_t walked = 0;
  for (Outcome outcome = Outcome::stepped;
       outcome == Outcome::stepped && walked != kWalkedFrames;) {
    frames[walked++] = {frame.pc, frame.sp, frame.bp, 0, frame.exact, frame.guessed};
    PackedRule rule;
    outcome = walk.step(hook, frame, rule);
  }
  std::uint64_t found = thread.generation;
  for (std::uint32_t i = walked; i != 0; --i) found = chain_of(found, frames[i - 1]);
  if (found != chain)
    report_difference(hook, "a cached chain is not the full walk's", 0, chain, found);
}

[[gnu::noinline]] void check_quick_node(InHook hook, ThreadStacks& thread, std::uint32_t root,
                                        std::uint32_t node) noexcept {
  count(g_counts->quick_nodes);
  const std::uint32_t captured = capture(hook, thread, root);
  if (captured != node)
    report_difference(hook, "a quick node is not the captured one", 0, node, captured);
}

void count_rule(PackedRule rule) noexcept {
  count(g_counts->rules);
  if (rule.kind() == RuleKind::unsupported) count(g_counts->odd_rules);
  if (rule.kind() == RuleKind::step && !rule.is_step()) count(g_counts->large_rules);
}

void report_difference(InHook, const char* what, std::uint64_t where, std::uint64_t found,
                       std::uint64_t expected) noexcept {
  if (g_counts->different.fetch_add(1, std::memory_order_relaxed) < kPrinted) {
    char buffer[256];
    system::Text line(buffer);
    line << "oomrec: self-check: " << what << " (frame ";
    line.number(where) << ": found ";
    line.hex(found) << ", expected ";
    line.hex(expected) << ")\n";
    system::call(SYS_write, STDERR_FILENO, line.c_str(), line.size());
  }
  if (g_counts == &g_of_this_process) std::abort();
}

}  // namespace oomrec::stack
