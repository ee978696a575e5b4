// Stacks: the interface between an event and its call stack.
//
// capture() walks the calling thread's native frames, merges Python's, and interns the result in
// the session's trie. It hides how (CFI rules, caches, Python offsets). The promise of InHook holds
// throughout; reads of the stack stay inside the thread's own stack.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "common/machine/frames.h"
#include "common/session/layout.h"
#include "common/system/hook_scope.h"
#include "recorder/lua/lua.h"
#include "recorder/python/chain_cache.h"
#include "recorder/session/node_states.h"
#include "recorder/stack/uses_nodes.h"
#include "recorder/stack/walk_pieces.h"

namespace oomrec::stack {

// One native frame, as unwound. pc is a return address, unless `exact` (below a signal frame).
struct NativeFrame {
  std::uint64_t pc = 0;
  std::uint64_t sp = 0;     // value of the stack pointer in this frame, after return to it
  std::uint64_t word = 0;   // as interned; 0: not computed yet
  std::uint64_t chain = 0;  // of this frame and all further out: chain_of()
  bool exact = false;
  bool guessed = false;  // found by frame pointer, where there is no CFI

  // About the step out of it (walk_cache.cpp).
  bool bp_matters = false;  // this step or one further out uses bp before reloading it
  std::uint16_t cells =
      0;  // of NativeCache::cells, the first that this step or one further out read
  std::uint32_t rule = 0;  // a PackedRule's bits; 0: more than a rule was needed
  std::uint64_t bp = 0;    // in the frame itself
  PieceCell piece{};       // of a cached walk, with the same cells
};

// A stack's memory: [low, high).
enum class StackKind : std::uint64_t {
  mapping,  // all of a mapping
  growing,  // likewise, of one that grows downwards by itself: the main thread's
  probed,   // readable memory around the thread's sp; there may be more of it below
};
struct StackRange {
  std::uint64_t low, high;
  StackKind kind;
};
inline constexpr std::uint32_t kStackRanges = 8;

// A frame of the current walk.
struct FreshFrame {
  std::uint64_t pc, sp, bp;
  std::uint32_t rule;
  bool exact, guessed;
};

inline std::uint64_t chain_of(std::uint64_t outside, const FreshFrame& frame) noexcept {
  const std::uint64_t flags = std::uint64_t{frame.exact} << 62 | std::uint64_t{frame.guessed} << 63;
  return chain_of(outside, frame.pc ^ flags, frame.sp);
}

// The thread's last walk: walk_cache.cpp. Frames and cells fill their arrays from the end, the
// outermost last, so that a reused outer part need not move.
inline constexpr std::uint32_t kOwnFrames = 32;  // this library's, innermost; removed later
inline constexpr std::uint32_t kWalkedFrames = session::kMaxFrames + kOwnFrames;
inline constexpr std::uint16_t kCells = 2 * kWalkedFrames;
struct NativeCache {
  NativeFrame frames[kWalkedFrames + 1];  // the last ends searches: its sp is above any other
  FreshFrame fresh[kWalkedFrames];        // innermost first
  Cell cells[kCells + 1];                 // the last is a sentinel that never matches
  std::uint32_t reusable;                 // how many frames, the outermost, may be reused
};

// A recent walk, and the node of the stack that it was a part of (walk_cache.h).
struct CachedWalk {
  std::uint64_t pc, sp, bp;  // of the frame at which it began; pc 0: no walk
  PieceCell cells;           // that it read
  bool bp_matters;
  std::uint32_t root, node;  // node 0: unknown
  std::uint64_t python;      // chain of the Python frames, salted with the node's era
  std::uint64_t chain;       // its result
};

// A thread's recent walks, overwritten in the order in which they were made, and where to look for
// one: hints, any of which may be wrong.
struct CachedWalks {
  using Number = std::uint16_t;

  CachedWalk* walks;
  std::uint32_t count;
  std::uint32_t next;          // to be overwritten
  std::span<Number> begun;     // by pc and sp: the one found last
  std::span<Number> changed;   // by another walk and its first changed cell
  std::span<Number> resulted;  // by chain
  Number* missed;              // the hint that led no further; nullptr: none
  bool searched;               // in vain, for the stack that is captured next
};

// The node of a recent stack, by its two chains and the node it hangs below. The first chain is
// salted with the era: in another one the node may be another stack's.
struct CachedStack {
  std::uint64_t native, python;
  std::uint32_t root, node;
};

// The memory of a thread's caches. Most threads have few stacks, and a server has many threads, so
// they begin with the small one.
template <std::uint32_t kWalks, std::uint32_t kStacks>
struct CacheMemory {
  CachedWalks::Number begun[kWalks], changed[8 * kWalks], resulted[2 * kWalks];
  CachedWalk walks[kWalks];
  PieceMemory<kWalks * 3 / 2, kWalks * 16> pieces;
  CachedStack stacks[kStacks];
};
using SmallCacheMemory = CacheMemory<64, 256>;
using LargeCacheMemory = CacheMemory<1024, 8192>;

// Decides when a thread needs the large one: walk_cache.cpp.
struct CacheGrowth {
  LargeCacheMemory* large;  // nullptr: not yet
  std::uint64_t began_ns;   // when the latest walks began to be counted
  std::uint32_t needless;   // walks to stacks that were known
};

// Whether `cached` is the stack that `other` begins, and has its node.
inline bool is_same(const CachedStack& cached, const CachedStack& other) noexcept {
  return cached.native == other.native && cached.python == other.python &&
         cached.root == other.root && cached.node != 0;
}

// One frame of a merged stack, with how much of both chains it and the frames outside it represent.
struct MergedFrame {
  std::uint64_t word;
  std::uint32_t node;
  std::uint16_t native;  // frames: written, or run the Python frames that are
  std::uint16_t python;  // links
  std::uint32_t hash;    // of it and all frames outside it: intern.h
};

// The last stack that the thread merged and interned, outermost frame first: merge.h.
struct MergedCache {
  std::uint32_t era;  // of its nodes
  std::uint32_t root;
  std::uint32_t count;
  bool joinable;                 // frames may be reused, not only compared
  std::uint32_t native, python;  // how much of both chains, the outermost part, is unchanged since
  MergedFrame frames[session::kMaxFrames];
  MergedFrame fresh[session::kMaxFrames];  // the current merge, innermost first
};

// Call it when memory may no longer be readable.
void on_unmapped(InHook, std::uint64_t address, std::uint64_t bytes) noexcept;

// One module's addresses, and its id for frame words.
struct CodeRange {
  std::uint64_t start, bytes, base;
  std::uint32_t module;  // its id in the session
};
inline constexpr std::uint32_t kCodeRanges = 16;  // by address, in MiB

// A thread's buffers and caches: too large for the program's stack. One for each lane, in private
// mapped memory, initially zeroed, reused by the lane's next thread after reset_thread(). What
// every capture needs comes first.
struct ThreadStacks {
  std::atomic<std::uint32_t> era;   // UsesNodes
  StackRange ranges[kStackRanges];  // the thread's own first
  std::uint32_t next_range;
  std::uint32_t generation;  // of the caches: walk_cache.h; 0: never used, all zero
  bool is_waited_for;        // at its last capture with Waiting::included
  CacheGrowth growth;
  CachedWalks walks;
  WalkPieces pieces;
  std::span<CachedStack> stacks;
  CodeRange code[kCodeRanges];
  MergedCache merged;
  NativeCache native;
  PythonCache python;
  LuaCache* lua;  // nullptr: not yet
  SmallCacheMemory small;
  alignas(16) unsigned char unwinder[machine::kUnwinderBytes];  // libunwind's cursor and context,
                                                                // for odd frames
};

// The cache slot of a stack with these chains.
inline CachedStack& slot_of(ThreadStacks& thread, const CachedStack& stack) noexcept {
  const std::uint64_t chain = chain_of(stack.root, stack.native, stack.python);
  return thread.stacks[chain >> 32 & (thread.stacks.size() - 1)];
}

// Finds the interpreter and the functions that we call. Called from the constructor, outside hooks,
// because only there dlsym is allowed.
void start() noexcept;

// Within UsesNodes: captures the calling thread's stack, without the frames of liboomrec.so itself.
// `group`: the node of the thread's group, which becomes the outermost. Returns the innermost node;
// `group` itself if nothing could be unwound. Counts truncated stacks in the header.
// `waiting`: of a thread that runs no Python, the frames of Python that wait for it are further
// out.
enum class Waiting : bool { left_out, included };
std::uint32_t capture(InHook, ThreadStacks&, std::uint32_t group,
                      Waiting = Waiting::left_out) noexcept;

// Interns one more frame below `parent`; 0 when the trie is full.
std::uint32_t intern(InHook, std::uint32_t parent, std::uint64_t frame) noexcept;

void reset_thread(InHook, ThreadStacks&) noexcept;  // before another thread uses it
// After dlclose: checks that every module is still loaded, and discards the rules and caches if one
// is not. 1 µs a module.
void on_modules_unloaded(InHook) noexcept;
// The same for one module, the next at each call. Called by the tick, because glibc closes some
// libraries by itself.
void check_next_module(InHook) noexcept;
// Whether a round of forgetting is due because many libraries were unloaded since the last one, or
// no more can be recorded.
bool has_many_dead_modules() noexcept;
void reset_after_fork(InHook) noexcept;  // interned ids belong to the parent

// A native frame as an activation of its function: the same one as long as pc and sp are the same.
// pc: a return address; sp: after the return to it.
struct Activation {
  std::uint64_t pc, sp, bp;
};

// The calling thread's innermost activations, without the frames of liboomrec.so itself: first the
// hook's caller. Returns how many. Cheap after capture().
std::uint32_t current_activations(InHook, ThreadStacks&, std::span<Activation>) noexcept;

struct Registers {
  std::uint64_t pc, sp, bp;
  bool exact = true;  // pc is the instruction itself, not a return address
  // The return address, if the function keeps it in a register (machine::kCallStoresReturn), of an
  // exact frame; 0: unknown.
  std::uint64_t link = 0;
};

// What has become of earlier activations of the same thread.
struct Progress {
  std::uint32_t ended = 0;  // so many innermost ones have returned; all of them: none is left
  // In the innermost that is left: the interrupted instruction (`exact`), or the return address of
  // its current call. 0: unknown.
  std::uint64_t at = 0;
  bool exact = false;
};

// The calling thread's innermost frames where a fatal signal interrupted it: words as in
// session::Node, native and Python, innermost first. Returns how many. The stack may be damaged or
// have overflowed, so it is read through the kernel, two system calls a frame. Clears the thread's
// caches. `progress`: since `earlier`.
std::uint32_t capture_interrupted(InHook, ThreadStacks&, const Registers& at,
                                  std::span<std::uint64_t> frames,
                                  std::span<const Activation> earlier, Progress& progress) noexcept;

// Whether `address` lies beyond the end of the stack that `sp` is on, with sp near that end. Reads
// /proc/self/maps.
bool is_beyond_stack(InHook, std::uint64_t sp, std::uint64_t address) noexcept;

// --- The parts, one by one (each has its own file and its own tests)
// ------------------------------

// unwind.cpp: from `at` outwards, at most `capacity` frames. *truncated: there are more frames, or
// the walk failed.
std::uint32_t unwind(InHook, const Registers& at, ThreadStacks&, NativeFrame* frames,
                     std::uint32_t capacity, bool* truncated) noexcept;

// modules.cpp: the module that contains `pc` (for a return address pass pc - 1), recorded in the
// session when first seen; 0: none.
struct ModuleRef {
  std::uint32_t id;
  std::uint64_t base;
};
ModuleRef module_at(InHook, std::uint64_t pc) noexcept;

}  // namespace oomrec::stack
