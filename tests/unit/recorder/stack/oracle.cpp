#define UNW_LOCAL_ONLY
#include "oracle.h"

#include <libunwind.h>
#include <link.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "recorder/stack/walk_cache.h"
#include "recorder/symbols/elf_symbols.h"

#ifdef ORACLE_ASKS_THE_LOADER
// Independent of the tested code: libunwind finds modules by the loader's own list.
extern "C" int oomrec_dl_iterate_phdr(int (*visit)(dl_phdr_info*, std::size_t, void*), void* data) {
  return dl_iterate_phdr(visit, data);
}
#endif

namespace oomrec::stack {

OracleCount g_oracle{};

namespace {

struct OracleFrame {
  std::uint64_t pc, sp;
};
constexpr unsigned kOracleFrames = 2048;

// So many stacks of a thread are walked with its small caches.
constexpr unsigned kSmallUntil = 6'000;

struct Buffers {
  ThreadStacks thread;
  NativeFrame full[session::kMaxFrames];
  OracleFrame oracle[kOracleFrames];
  std::atomic<bool> busy;
  unsigned stacks;
};

Buffers& buffers() {
  static thread_local Buffers* mine = static_cast<Buffers*>(std::calloc(1, sizeof(Buffers)));
  return *mine;
}

#ifdef __aarch64__
// There libunwind also reads the code of each frame, after a check that needs a pipe, which it does
// not get. An emulator of user space has no system call for it.
int read_word(unw_addr_space_t, unw_word_t address, unw_word_t* value, int write, void*) {
  if (write != 0) return -UNW_EREADONLYREG;
  const InHook hook = OutsideHooks::in_hook();
  static const std::uint64_t here = 0;
  static const bool is_checked =
      symbols::read_own_memory(hook, reinterpret_cast<std::uint64_t>(&here), value, sizeof *value);
  if (is_checked)
    return symbols::read_own_memory(hook, address, value, sizeof *value) ? 0 : -UNW_EINVAL;
  *value = machine::load_word(address);
  return 0;
}
// From interrupted code without CFI it goes by the register with the return address: right in a
// linkage table's entry.
constexpr bool kTakesLink = true;
#else
constexpr bool kTakesLink = false;
#endif

unsigned walk_with_libunwind(OracleFrame* frames) {
  static const bool once = [] {
    unw_set_caching_policy(unw_local_addr_space, UNW_CACHE_NONE);
#ifdef __aarch64__
    unw_get_accessors(unw_local_addr_space)->access_mem = read_word;
#endif
    return true;
  }();
  static_cast<void>(once);
  unw_context_t context;
  unw_cursor_t cursor;
  unw_getcontext(&context);
  unw_init_local(&cursor, &context);
  unsigned count = 0;
  bool interrupted = false;
  do {
    unw_word_t pc = 0;
    unw_word_t sp = 0;
    unw_get_reg(&cursor, UNW_REG_IP, &pc);
    unw_get_reg(&cursor, UNW_REG_SP, &sp);
    if (pc == 0) break;
    frames[count++] = {pc, sp};
    unw_proc_info_t info;  // without it libunwind guesses, and is not an oracle
    const bool is_signal = unw_is_signal_frame(&cursor) > 0;
    const bool has_link = kTakesLink && interrupted;
    if (!is_signal && !has_link && unw_get_proc_info(&cursor, &info) != 0) break;
    interrupted = is_signal;
  } while (count < kOracleFrames && unw_step(&cursor) > 0);
  return count;
}

constexpr const char* kGivenUp = "given up";

// Both walks start in this file, and are compared from its caller's frame on.
const char* difference(const NativeFrame* ours, unsigned our_count, bool truncated,
                       const OracleFrame* theirs, unsigned their_count, std::uint64_t caller,
                       unsigned* where) {
  unsigned i = 0;
  unsigned j = 0;
  while (i < our_count && ours[i].pc != caller) ++i;
  while (j < their_count && theirs[j].pc != caller) ++j;
  *where = i;
  if (i == our_count || j == their_count) return "the caller was not found";
  for (; i < our_count && j < their_count; ++i, ++j) {
    *where = i;
    if (ours[i].pc != theirs[j].pc) return "another pc";
    if (ours[i].sp != theirs[j].sp) return "another sp";
    if (ours[i].guessed) return "a guess";
  }
  *where = i;
  if (i < our_count) return "too long";
  // At an interrupted instruction with wrong CFI both may fail at the same frame.
  const bool interrupted =
      std::any_of(ours + 1, ours + our_count, [](const NativeFrame& frame) { return frame.exact; });
  const bool lost = truncated && our_count < session::kMaxFrames;
  if (lost && (j < their_count || interrupted)) return kGivenUp;
  if (truncated != (j < their_count)) return "truncation not marked, or marked without reason";
  return nullptr;
}

// Compares frames reused from the thread's last walk with a full walk.
const char* memo_difference(const NativeStack& remembered, const NativeFrame* full,
                            unsigned full_count, bool truncated, unsigned* where) {
  for (*where = 0; *where < std::min(remembered.count, full_count); ++*where) {
    const NativeFrame& ours = remembered.frames[*where];
    const NativeFrame& theirs = full[*where];
    if (ours.pc != theirs.pc || ours.sp != theirs.sp || ours.exact != theirs.exact ||
        ours.guessed != theirs.guessed) {
      return "the memo has another frame than the full walk";
    }
  }
  if (full_count == session::kMaxFrames) return nullptr;  // the memo holds a few more
  if (remembered.count != full_count || remembered.truncated != truncated)
    return "the memo ends elsewhere than the full walk";
  return nullptr;
}

}  // namespace

[[gnu::noinline]] void compare_here() {
  Buffers& mine = buffers();
  if (mine.busy.exchange(true)) return;
  const InHook hook = OutsideHooks::in_hook();
  Registers here;
  machine::read_registers(here.pc, here.sp, here.bp);
  here.exact = false;  // like the caller of a hook: only such walks are cached
  bool truncated = false;
  const unsigned ours = unwind(hook, here, mine.thread, mine.full, session::kMaxFrames, &truncated);
  const CachedWalk* const walk = find_walk(hook, here, mine.thread);
  const std::uint64_t known = walk != nullptr ? walk->chain : 0;
  const NativeStack remembered = cached_unwind(hook, here, mine.thread);
  if (++mine.stacks == kSmallUntil) enlarge_caches(mine.thread);
  const unsigned theirs = walk_with_libunwind(mine.oracle);
  unsigned where = 0;
  const auto caller = reinterpret_cast<std::uint64_t>(__builtin_return_address(0));
  const char* problem = memo_difference(remembered, mine.full, ours, truncated, &where);
  if (problem == nullptr && known != 0 && known != remembered.frames->chain)
    problem = "the chain of a known walk is another one";
  if (problem == nullptr)
    problem = difference(mine.full, ours, truncated, mine.oracle, theirs, caller, &where);

  static std::mutex counting;
  const std::lock_guard guard{counting};
  ++g_oracle.stacks;
  g_oracle.frames += ours;
  if (known != 0) ++g_oracle.known;
  if (ours > g_oracle.deepest) g_oracle.deepest = ours;
  if (problem == kGivenUp) ++g_oracle.given_up;
  if (problem != nullptr && problem != kGivenUp && g_oracle.different++ < 5) {
    std::fprintf(stderr, "%s at frame %u (we have %u%s, libunwind %u)\n", problem, where, ours,
                 truncated ? ", truncated" : "", theirs);
    for (unsigned i = 0; i < ours && i < where + 3; ++i) {
      Dl_info in{};
      dladdr(reinterpret_cast<void*>(mine.full[i].pc), &in);
      std::fprintf(stderr, "  %2u pc %#lx sp %#lx %s %s\n", i, mine.full[i].pc, mine.full[i].sp,
                   in.dli_sname ? in.dli_sname : "", in.dli_fname ? in.dli_fname : "");
    }
  }
  mine.busy.store(false);
}

}  // namespace oomrec::stack
