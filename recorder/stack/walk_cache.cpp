#include "recorder/stack/walk_cache.h"

#include <atomic>
#include <iterator>
#include <utility>

#include "common/machine/frames.h"
#include "common/machine/page.h"
#include "common/system/files.h"
#include "common/system/memory.h"
#include "recorder/python/chain_cache.h"
#include "recorder/python/walk.h"
#include "recorder/stack/java.h"
#include "recorder/stack/self_check.h"

namespace oomrec::stack {

constinit std::atomic<std::uint32_t> g_walk_generation{1};

namespace {

// The caller's bp, as the step out of `frame`, which is cached, would find it.
std::uint64_t bp_outside(const NativeFrame& frame, std::uint64_t bp,
                         const NativeFrame& outer) noexcept {
  const PackedRule rule(frame.rule);
  switch (rule.bp()) {
    case BpLocation::unchanged:
      break;
    case BpLocation::cfa_cell:
      return machine::load_word(outer.sp + rule.bp_offset());
    case BpLocation::bp_cell:
      return machine::load_word(bp + rule.bp_offset());
    case BpLocation::lost:
      return 0;
  }
  return bp;
}

// The current walk, and the cached one that it may meet. One function, so that the state of a step
// stays in registers.
class Unwinding {
 public:
  Unwinding(InHook hook, const Registers& at, ThreadStacks& thread) noexcept
      : hook_(hook), thread_(thread), cache_(thread.native), walk_(hook, thread, at.sp) {
    walk_.set_link(at.link);
  }

  NativeStack stack(FrameState now) noexcept {
    NativeFrame* next = end() - cache_.reusable;  // cached, not further in than the walk
    FreshFrame* fresh = cache_.fresh;
    Outcome outcome = Outcome::stepped;
    while (outcome == Outcome::stepped && fresh != std::end(cache_.fresh)) {
      while (next->sp < now.sp) ++next;
      if (next->sp == now.sp && is_hit(*next, now)) {
        const auto changed =
            static_cast<std::uint32_t>(first_changed(cache_.cells + next->cells) - cache_.cells);
        if (changed == kCells && next - cache_.frames >= fresh - cache_.fresh) {
          return enter(fresh, next,
                       {next->pc, next->sp, next->bp, next->chain, next->cells, next->bp_matters},
                       true);
        }
        // All cells before `changed` are valid, so skip to the outermost frame that they prove to
        // be on the present stack.
        for (; next[1].cells <= changed && next + 1 != end() && fresh != std::end(cache_.fresh);
             ++next) {
          *fresh++ = {next->pc, next->sp, now.bp, next->rule, false, false};
          now.bp = bp_outside(*next, now.bp, next[1]);
          now.pc = next[1].pc;
          now.sp = next[1].sp;
        }
        ++next;
        if (fresh == std::end(cache_.fresh)) break;
      }
      FreshFrame& frame = *fresh++;
      frame = {now.pc, now.sp, now.bp, 0, now.exact, now.guessed};
      const FrameState stepped_out_of = now;
      PackedRule rule;
      outcome = walk_.step(hook_, now, rule);
      frame.rule = rule.bits();
      if (!rule.present()) [[unlikely]]
        fresh = show_lines(stepped_out_of, frame, fresh);
    }
    const bool complete = outcome == Outcome::outermost;
    return enter(fresh, end(), {now.pc, now.sp, now.bp, thread_.generation, kCells, false},
                 complete);
  }

 private:
  // The frame outside the one being stored.
  struct Outside {
    std::uint64_t pc, sp, bp;
    std::uint64_t chain;
    std::uint32_t cells;
    bool bp_matters;
  };

  // Puts the lines that a frame of Java runs in its place. Returns where the next frame is entered.
  [[gnu::noinline]] FreshFrame* show_lines(const FrameState& at, FreshFrame& frame,
                                           FreshFrame* fresh) const noexcept {
    std::uint64_t lines[kMostInlined];
    const std::uint32_t found = walk_.lines_of(hook_, at, lines);
    if (found != 0) frame.pc = lines[0];
    for (std::uint32_t i = 1; i < found && fresh != std::end(cache_.fresh); ++i) {
      *fresh = frame;
      fresh++->pc = lines[i];
    }
    return fresh;
  }

  NativeFrame* end() const noexcept { return cache_.frames + kWalkedFrames; }

  bool is_hit(const NativeFrame& cached, const FrameState& now) const noexcept {
    return cached.pc == now.pc && !now.exact && !walk_.has_guessed() &&
           (!cached.bp_matters || cached.bp == now.bp);
  }

  // Stores the fresh frames inside `kept`, a cached one.
  [[gnu::always_inline]] NativeStack enter(const FreshFrame* fresh, NativeFrame* kept,
                                           Outside outside, bool complete) noexcept {
    NativeFrame* at = kept;
    NativeFrame* reusable = kept;
    bool is_reusable = complete;
    while (fresh != cache_.fresh) {
      const FreshFrame& frame = *--fresh;
      const PackedRule rule(frame.rule);
      is_reusable = enter_cells(frame, rule, outside) && is_reusable;
      is_reusable = is_reusable && !frame.exact && !frame.guessed;
      outside.pc = frame.pc;
      outside.sp = frame.sp;
      outside.bp = frame.bp;
      outside.chain = chain_of(outside.chain, frame);
      *--at = {.pc = frame.pc,
               .sp = frame.sp,
               .word = 0,
               .chain = outside.chain,
               .exact = frame.exact,
               .guessed = frame.guessed,
               .bp_matters = outside.bp_matters,
               .cells = static_cast<std::uint16_t>(outside.cells),
               .rule = frame.rule,
               .bp = frame.bp};
      if (is_reusable) reusable = at;
    }
    cache_.reusable = static_cast<std::uint32_t>(end() - reusable);
    if (is_reusable && at != end()) cache_walk(*at, *kept);
    return {at, static_cast<std::uint32_t>(end() - at), static_cast<std::uint32_t>(end() - kept),
            !complete, walk_.has_crossed_signal()};
  }

  // Caches the walk from `first`, which met `kept`, or the end of the stack.
  [[gnu::always_inline]] void cache_walk(NativeFrame& first, NativeFrame& kept) const noexcept {
    if (&first != &kept || !first.piece.valid()) {
      if (!add_piece(first, join_of(kept))) return;
    }
    CachedWalks& walks = thread_.walks;
    CachedWalks::Number& resulted = hint_of(walks.resulted, first.chain);
    if (!is_walk(walks.walks[resulted], first)) {
      resulted = static_cast<CachedWalks::Number>(walks.next);
      if (++walks.next == walks.count) walks.next = 0;
    }
    walks.walks[resulted] = {first.pc, first.sp, first.bp, first.piece, first.bp_matters,
                             0,        0,        0,        first.chain};
    hint_of(walks.begun, state_hash(first.pc, first.sp)) = resulted;
    if (CachedWalks::Number* const missed = std::exchange(walks.missed, nullptr))
      *missed = resulted;
  }

  static bool is_walk(const CachedWalk& walk, const NativeFrame& first) noexcept {
    return walk.chain == first.chain && walk.pc == first.pc && walk.sp == first.sp;
  }

  // Where a new piece that meets `kept` goes on. That is `kept`'s piece, or if a walk visited too
  // many then, the outermost; end() if one of them was overwritten.
  const NativeFrame& join_of(const NativeFrame& kept) const noexcept {
    PieceCell at = kept.piece;
    if (!at.valid()) return *end();
    if (at.piece->length < WalkPieces::kMostLength) return kept;
    std::uint32_t cells = kept.cells;
    while (at.piece->outer.piece != nullptr) {
      cells += static_cast<std::uint32_t>(at.piece->end - at.cell);
      at = at.piece->outer;
      if (!at.valid()) return *end();
    }
    const NativeFrame* frame = &kept;
    while (frame->cells < cells) ++frame;
    return frame->piece.valid() && frame->piece.piece->length == 1 ? *frame : *end();
  }

  // Makes a piece of the frames from `first` to before `join`. False: it would be too large.
  bool add_piece(NativeFrame& first, const NativeFrame& join) const noexcept {
    const std::uint32_t count = join.cells - first.cells;
    if (count > WalkPieces::kMostCells) return false;
    const PieceCell made = thread_.pieces.add(cache_.cells + first.cells, count, join.piece);
    for (NativeFrame* frame = &first; frame != &join; ++frame) {
      frame->piece = made;
      frame->piece.cell += frame->cells - first.cells;
    }
    return true;
  }

  // Stores the cells that the step out of `frame` read, in the order of reading. False: the step
  // read more than cells can express.
  [[gnu::always_inline]] bool enter_cells(const FreshFrame& frame, PackedRule rule,
                                          Outside& outside) const noexcept {
    const auto enter = [&](std::uint64_t address, std::uint64_t value) {
      cache_.cells[--outside.cells] = {address, value};
    };
    if (!rule.is_step() || outside.cells < 3) [[unlikely]] {
      outside.bp_matters = false;
      return rule.present() && rule.kind() == RuleKind::end;
    }
    const std::uint64_t return_cell = outside.sp + rule.return_offset();
    enter(return_cell, machine::saved_word(return_cell, outside.pc));
    if (outside.bp_matters && rule.bp() == BpLocation::cfa_cell)
      enter(outside.sp + rule.bp_offset(), outside.bp);
    if (outside.bp_matters && rule.bp() == BpLocation::bp_cell)
      enter(frame.bp + rule.bp_offset(), outside.bp);
    if (rule.cfa() == CfaBase::bp_cell) enter(frame.bp + rule.cfa_offset(), outside.sp);
    outside.bp_matters = rule.uses_bp() || (rule.keeps_bp() && outside.bp_matters);
    return true;
  }

  const InHook hook_;
  ThreadStacks& thread_;
  NativeCache& cache_;
  Walk walk_;
};

template <std::uint32_t kWalks, std::uint32_t kStacks>
void use(ThreadStacks& thread, CacheMemory<kWalks, kStacks>& memory) noexcept {
  thread.walks = {.walks = memory.walks,
                  .count = kWalks,
                  .next = 0,
                  .begun = memory.begun,
                  .changed = memory.changed,
                  .resulted = memory.resulted,
                  .missed = nullptr,
                  .searched = false};
  thread.stacks = memory.stacks;
  thread.pieces.use(memory.pieces);
}

// The memory that every first walk touches, with one system call instead of a fault for each page.
// Where the kernel cannot do that, they are touched one by one.
void populate_for_first_walk(ThreadStacks& thread) noexcept {
  const auto from = machine::page_down(reinterpret_cast<std::uintptr_t>(&thread.ranges));
  const auto to = reinterpret_cast<std::uintptr_t>(&thread.merged.frames[1]);
  system::populate(reinterpret_cast<void*>(from), to - from);
}

}  // namespace

CachedWalk* find_walk(InHook hook, const Registers& at, ThreadStacks& thread) noexcept {
  CachedWalk* const walk =
      at.exact ? nullptr : find_walk(thread, at.pc, at.sp, [&] { return at.bp; });
  if constexpr (kSelfCheck) {
    if (walk != nullptr) check_cached_chain(hook, at, thread, walk->chain);
  }
  return walk;
}

CachedWalk* walk_with_chain(ThreadStacks& thread, const Registers& at,
                            std::uint64_t chain) noexcept {
  CachedWalks& walks = thread.walks;
  CachedWalk& walk = walks.walks[hint_of(walks.resulted, chain)];
  return walk.pc == at.pc && walk.sp == at.sp && walk.chain == chain ? &walk : nullptr;
}

void count_needless_walk(ThreadStacks& thread) noexcept {
  // Half a microsecond each: 5 % of the thread's time, if that often.
  constexpr std::uint32_t kCounted = 256;
  constexpr std::uint64_t kOften = kCounted * 10'000;
  CacheGrowth& growth = thread.growth;
  if (growth.large != nullptr || ++growth.needless % kCounted != 0) return;
  const std::uint64_t now = system::monotonic_ns();
  const bool often = now - growth.began_ns < kOften;
  growth.began_ns = now;
  if (often) enlarge_caches(thread);
}

void enlarge_caches(ThreadStacks& thread) noexcept {
  CacheGrowth& growth = thread.growth;
  growth.large = static_cast<LargeCacheMemory*>(system::map_private(sizeof(LargeCacheMemory)));
  if (growth.large != nullptr) use(thread, *growth.large);
}

NativeStack cached_unwind(InHook hook, const Registers& at, ThreadStacks& thread) noexcept {
  const std::uint32_t generation = g_walk_generation.load(std::memory_order_relaxed);
  if (thread.generation != generation) [[unlikely]] {
    clear_caches(thread);
    thread.generation = generation;
  }
  const NativeStack stack = Unwinding(hook, at, thread).stack(FrameState::of(at));
  if constexpr (kSelfCheck) check_native(hook, at, thread, stack);
  return stack;
}

void clear_caches(ThreadStacks& thread) noexcept {
  const bool is_new = thread.generation == 0;
  if (is_new) populate_for_first_walk(thread);
  NativeCache& cache = thread.native;
  cache.reusable = 0;
  // What a walk that meets no cached frame ends at.
  NativeFrame& outermost = cache.frames[kWalkedFrames];
  outermost.sp = ~std::uint64_t{0};
  outermost.cells = kCells;
  outermost.piece = {};
  make_sentinel(cache.cells[kCells]);
  if (is_new) {
    use(thread, thread.small);
    return;  // the rest is zero, and its pages are untouched
  }
  thread.pieces.clear();
  thread.merged.count = 0;
  for (CodeRange& code : thread.code) code = {};
  clear_python_cache(thread.python);
}

void invalidate_caches() noexcept { g_walk_generation.fetch_add(1, std::memory_order_relaxed); }

}  // namespace oomrec::stack
