// Stacks: the one narrow interface between an event and where it came from.
//
// capture() walks the calling thread's native frames, merges Python's, and interns the chain in the
// session's trie. What is behind it (CFI rules, memo, Python offsets) may change without a caller
// noticing. Promise of InHook throughout; reads of the stack stay inside the thread's own stack.
#pragma once

#include <cstdint>
#include <span>

#include "common/session/layout.h"
#include "common/system/hook_scope.h"
#include "recorder/python/chain.h"
#include "recorder/python/memo.h"

namespace oomrec::stack {

// One native frame, as unwound. pc is a return address, unless `exact` (below a signal frame).
struct NativeFrame {
  std::uint64_t pc = 0;
  std::uint64_t sp = 0;     // value of the stack pointer in this frame, after return to it
  std::uint64_t word = 0;   // as interned; 0: not asked for yet
  std::uint64_t chain = 0;  // of this frame and all further out: chain.h
  bool exact = false;
  bool guessed = false;  // found by frame pointer, where there is no CFI

  // What the memo knows of the step out of it (memo.cpp).
  bool bp_matters = false;  // this step or one further out needs bp before it is read anew
  std::uint16_t cells =
      0;                   // of NativeMemo::cells, the first that this step or one further out read
  std::uint32_t rule = 0;  // a PackedRule's bits; 0: more than a rule was needed
  std::uint64_t bp = 0;    // in the frame itself
};

// A stack as mapped: [low, high). `grows`: downwards by itself, as the main thread's does.
struct StackRange {
  std::uint64_t low, high;
  std::uint64_t grows;
};
inline constexpr std::uint32_t kStackRanges = 8;

// A frame of the walk under way.
struct FreshFrame {
  std::uint64_t pc, sp, bp;
  std::uint32_t rule;
  bool exact, guessed;
};

inline std::uint64_t chain_of(std::uint64_t outside, const FreshFrame& frame) noexcept {
  const std::uint64_t flags = std::uint64_t{frame.exact} << 62 | std::uint64_t{frame.guessed} << 63;
  return chain_of(outside, frame.pc ^ flags, frame.sp);
}

// A word that a step read off the stack.
struct Cell {
  std::uint64_t address, value;
};

// The thread's last walk: memo.cpp. Frames and cells stand at the end of their arrays, the
// outermost last, so that an outer part which is taken over stays where it is.
inline constexpr std::uint32_t kOwnFrames = 32;  // of this library, innermost; left out later
inline constexpr std::uint32_t kWalkedFrames = session::kMaxFrames + kOwnFrames;
inline constexpr std::uint16_t kCells = 2 * kWalkedFrames;
struct NativeMemo {
  NativeFrame frames[kWalkedFrames + 1];  // the last ends searches: its sp is above any other
  FreshFrame fresh[kWalkedFrames];        // innermost first
  Cell cells[kCells + 1];                 // the last never holds
  std::uint32_t reusable;  // how many of the frames, the outermost, may be taken over
};

// A walk that was made lately: what it read until it met a frame that was remembered (memo.cpp).
inline constexpr std::uint32_t kKnownCells = 8;
struct KnownWalk {
  std::uint64_t pc, sp, bp;  // where it began
  std::uint64_t chain;       // what it found
  std::uint64_t met_chain;   // of the frame that it met
  std::uint64_t met_bp;
  std::uint16_t met;  // that frame's place, counted from the outermost, from 1; 0: no walk
  std::uint8_t cells;
  bool bp_matters;
  Cell read[kKnownCells];
};
inline constexpr unsigned kKnownWalkBits = 7;

// A stack whose node is known: by its two chains and the node that it hangs below.
struct KnownStack {
  std::uint64_t native, python;
  std::uint32_t root, node;
};
inline constexpr unsigned kKnownStackBits = 12;

// One frame of a merged stack, with how much of the chains it and those outside it stand for.
struct MergedFrame {
  std::uint64_t word;
  std::uint32_t node;
  std::uint16_t native;  // frames: written, or run the Python frames that are
  std::uint16_t python;  // links
};

// The stack that the thread merged and interned last, the outermost frame first: merge.h.
struct MergedMemo {
  std::uint32_t root;
  std::uint32_t count;
  bool joinable;                 // frames may be taken over, not only compared
  std::uint32_t native, python;  // how much of both chains, the outermost part, stands since then
  MergedFrame frames[session::kMaxFrames];
  MergedFrame fresh[session::kMaxFrames];  // the merge under way, innermost first
};

// Nodes that the thread was given last, by a hash of what they stand for.
struct KnownNode {
  std::uint64_t frame;
  std::uint32_t parent, node;
};
struct NodeMemo {
  static constexpr unsigned kBits = 9;
  KnownNode nodes[1u << kBits];
};

// Where one module lies, and what frames in it are named by.
struct CodeRange {
  std::uint64_t start, bytes, base;
  std::uint32_t module;  // its id in the session
};
inline constexpr std::uint32_t kCodeRanges = 16;  // by address, in MiB

// A thread's buffers and memos: too large for the program's stack. One for each lane, in private
// mapped memory, zeroed at first, reused by the next thread of that lane after forget_thread().
struct ThreadStacks {
  NativeMemo memo;
  PythonMemo python;
  MergedMemo merged;
  NodeMemo nodes;
  KnownWalk walks[1u << kKnownWalkBits];
  KnownStack known[1u << kKnownStackBits];
  CodeRange code[kCodeRanges];
  StackRange ranges[kStackRanges];  // the thread's own first
  std::uint32_t next_range;
  std::uint32_t generation;                  // of what the memos know: memo.cpp
  alignas(16) unsigned char unwinder[2048];  // libunwind's cursor and context, for odd frames
};

// Finds the interpreter and the functions it needs; outside of hooks, from the constructor (dlsym
// is allowed here, and nowhere else).
void start() noexcept;

// Captures the calling thread's stack from the caller of this library inwards: frames of
// liboomrec.so itself are left out. `group` is the node of the thread's group, which becomes the
// outermost. Returns the innermost node: `group` itself when nothing could be unwound. Counts
// truncation in the header.
std::uint32_t capture(InHook, ThreadStacks&, std::uint32_t group) noexcept;

// Interns one more frame below `parent`; 0 when the trie is full.
std::uint32_t intern(InHook, std::uint32_t parent, std::uint64_t frame) noexcept;

void forget_thread(InHook, ThreadStacks&) noexcept;  // another thread will use it
// After dlclose: looks whether every known module still is what it was, and forgets what was known
// about those that are not. 1 µs a module.
void forget_modules(InHook) noexcept;
// The same for one module, the next at each call: on the tick, because glibc closes some libraries
// by itself.
void check_a_module(InHook) noexcept;
void forget_session(InHook) noexcept;  // after fork: interned ids belong to the parent

struct Registers {
  std::uint64_t pc, sp, bp;
  bool exact = true;  // pc is the instruction itself, not a return address
};

// The innermost frames of the calling thread where a fatal signal interrupted it: words as in
// session::Node, native and Python, innermost first; how many there are. The stack may be damaged,
// or run over: it is read through the kernel, two system calls a frame. What the thread remembers
// of its stacks is forgotten.
std::uint32_t capture_interrupted(InHook, ThreadStacks&, const Registers& at,
                                  std::span<std::uint64_t> frames) noexcept;

// Whether `address` lies beyond the end of the stack that `sp` is on, and sp near that end. Reads
// /proc/self/maps.
bool is_beyond_stack(InHook, std::uint64_t sp, std::uint64_t address) noexcept;

// --- The parts, one by one (each has its own file and its own tests)
// ------------------------------

// unwind.cpp: from `at` outwards, at most `capacity` frames. *truncated says that more were there
// or that the walk lost its way.
std::uint32_t unwind(InHook, const Registers& at, ThreadStacks&, NativeFrame* frames,
                     std::uint32_t capacity, bool* truncated) noexcept;

// modules.cpp: the module that holds `pc` (for a return address pass pc - 1), entered in the
// session at first sight; 0: none.
struct ModuleRef {
  std::uint32_t id;
  std::uint64_t base;
};
ModuleRef module_at(InHook, std::uint64_t pc) noexcept;

}  // namespace oomrec::stack
