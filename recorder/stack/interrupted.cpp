// The stack of a thread that a fatal signal interrupted.
//
// It may be damaged, and sp may lie in its guard page or below. So find its mapping again, and read
// every word through the kernel, where a bad address is an error and not a second fault.
#include <algorithm>
#include <cstring>

#include "common/machine/frames.h"
#include "recorder/python/walk.h"
#include "recorder/stack/capture.h"
#include "recorder/stack/memory_map.h"
#include "recorder/stack/merge.h"
#include "recorder/stack/unwind.h"
#include "recorder/symbols/elf_symbols.h"

namespace oomrec::stack {
namespace {

// How far beyond a stack's end an address still counts as its overflow: the main thread's stack has
// this much free below it (stack_guard_gap), and a frame may be large.
constexpr std::uint64_t kBeyond = 1 << 20;
constexpr std::uint64_t kNearEnd = 64 * 1024;

// The mapping that contains sp, or the one that sp has overflowed. Empty: unknown.
[[gnu::noinline]] StackRange stack_near(InHook hook, std::uint64_t sp) noexcept {
  MemoryMap map(hook);
  MappedRange range;
  while (map.next(range)) {
    if (range.end <= sp || !range.readable || !range.writable) continue;
    if (range.start > sp && range.start - sp > kBeyond) break;
    return {range.start, range.end, StackKind::mapping};
  }
  return {};
}

// False after a call through a bad pointer: then the caller's frame is the innermost.
bool is_code(InHook hook, std::uint64_t pc) noexcept {
  const std::uint32_t slot = module_slot_at(hook, pc);
  return slot != 0 && loaded_module(slot).segment_at(pc, PF_X).start != 0;
}

// The registers of the function that has called `at`, whose first instruction failed.
bool caller_of(InHook hook, const Registers& at, Registers& caller) noexcept {
  if constexpr (!machine::kCallStoresReturn) {
    caller = {at.link, at.sp, at.bp, false};
    return at.link != 0;
  }
  caller = {0, at.sp + sizeof caller.pc, at.bp, false};
  return symbols::read_own_memory(hook, at.sp, &caller.pc, sizeof caller.pc);
}

std::uint64_t word_at(InHook hook, std::uint64_t address) noexcept {
  std::uint64_t word = 0;
  symbols::read_own_memory(hook, address, &word, sizeof word);
  return word;
}

// An activation exists as long as the one that called it is on the stack.
Progress progress_since(std::span<const Activation> earlier, const NativeFrame* frames,
                        std::uint32_t count) noexcept {
  for (std::uint32_t i = 0; i + 1 < earlier.size(); ++i) {
    const Activation& caller = earlier[i + 1];
    const NativeFrame* const found = std::find_if(frames, frames + count, [&](const auto& frame) {
      return frame.pc == caller.pc && frame.sp == caller.sp;
    });
    if (found == frames || found == frames + count) continue;
    return {i, found[-1].pc, found[-1].exact};
  }
  return {static_cast<std::uint32_t>(earlier.size())};
}

// The same if the walk has not come so far out (deep recursion): by the return addresses that the
// calls have left on the stack.
Progress progress_by_return_addresses(InHook hook, std::span<const Activation> earlier,
                                      std::uint64_t sp) noexcept {
  for (std::uint32_t i = 0; i + 1 < earlier.size(); ++i) {
    const Activation& caller = earlier[i + 1];
    const std::uint64_t cell = machine::return_cell(earlier[i].bp, caller.sp);
    if (cell <= sp || machine::return_address(word_at(hook, cell)) != caller.pc) continue;
    return {i, word_at(hook, machine::return_cell(0, earlier[i].sp)), false};
  }
  return {static_cast<std::uint32_t>(earlier.size())};
}

// What a function stores where its bp points to: its caller's bp, and where it returns to.
struct FrameRecord {
  std::uint64_t bp, pc;
};

// Frame records of a stack, from the innermost outwards, read in larger pieces.
class FrameRecords {
 public:
  explicit FrameRecords(InHook hook) noexcept : hook_(hook) {}

  bool read(std::uint64_t at, FrameRecord& record) noexcept {
    if (at < start_ || at + sizeof record > start_ + bytes_) {
      if (reads_++ == kMostReads) return false;
      start_ = at;
      bytes_ = sizeof window_;
      if (!symbols::read_own_memory(hook_, at, window_, bytes_)) bytes_ = sizeof record;
      if (bytes_ == sizeof record && !symbols::read_own_memory(hook_, at, window_, bytes_))
        return false;
    }
    std::memcpy(&record, window_ + (at - start_), sizeof record);
    record.pc = machine::return_address(record.pc);
    return true;
  }

 private:
  static constexpr unsigned kMostReads = 16384;  // some 10 ms
  const InHook hook_;
  std::uint8_t window_[1024];
  std::uint64_t start_ = 0;
  std::size_t bytes_ = 0;
  unsigned reads_ = 0;
};

// The same where a call stores nothing. A record that a function left behind stays on the stack
// below its caller's frame, so only those count that lead outwards from the innermost one, `bp`.
Progress progress_by_records(InHook hook, std::span<const Activation> earlier,
                             std::uint64_t bp) noexcept {
  const Progress unknown{static_cast<std::uint32_t>(earlier.size())};
  FrameRecords records(hook);
  std::uint64_t returns_to = 0;  // of the function below
  FrameRecord record;
  for (std::uint64_t at = bp; records.read(at, record); at = record.bp) {
    for (std::uint32_t i = 0; i + 1 < earlier.size(); ++i)
      if (at == earlier[i].bp && record.pc == earlier[i + 1].pc) return {i, returns_to, false};
    if (record.bp <= at) return unknown;
    returns_to = record.pc;
  }
  return unknown;
}

}  // namespace

std::uint32_t capture_interrupted(InHook hook, ThreadStacks& thread, const Registers& at,
                                  std::span<std::uint64_t> words,
                                  std::span<const Activation> earlier,
                                  Progress& progress) noexcept {
  UsesNodes uses;  // for its modules
  uses.begin(thread.era);
  clear_caches(thread);  // their buffers are used here
  NativeFrame* const frames = thread.native.frames;
  StackRange bounds = stack_near(hook, at.sp);
  if (bounds.high == 0) bounds = stack_bounds(hook, thread, at.sp);
  Walk walk(thread, bounds);
  Registers from = at;
  std::uint32_t count = 0;
  bool truncated = false;
  if (!is_code(hook, at.pc) && caller_of(hook, at, from) && is_code(hook, from.pc - 1))
    frames[count++] = {.pc = at.pc, .sp = at.sp, .exact = true};
  else
    from = at;
  walk.set_link(from.link);
  count += unwind(hook, walk, from, frames + count, kWalkedFrames - count, &truncated);
  NativeFrame* const end = std::remove_if(
      frames, frames + count, [](const NativeFrame& frame) { return is_own_code(frame.pc); });
  count = static_cast<std::uint32_t>(end - frames);
  progress = progress_since(earlier, frames, count);
  if (truncated && progress.ended == earlier.size())
    progress = machine::kCallStoresReturn ? progress_by_return_addresses(hook, earlier, at.sp)
                                          : progress_by_records(hook, earlier, at.bp);
  const NativeStack native{frames, std::min(count, session::kMaxFrames), 0, truncated, true};

  const PythonStack python = python_stack(hook, thread.python, true);
  MergedFrame* const merged = thread.merged.fresh;
  const std::uint32_t found = merge(hook, native, python, {}, merged, session::kMaxFrames).count;
  const auto kept = std::min(found, static_cast<std::uint32_t>(words.size()));
  for (std::uint32_t i = 0; i < kept; ++i) words[i] = merged[i].word;
  clear_caches(thread);
  uses.end();
  return kept;
}

bool is_beyond_stack(InHook hook, std::uint64_t sp, std::uint64_t address) noexcept {
  const StackRange stack = stack_near(hook, sp);
  if (address < stack.low) return stack.low - address <= kBeyond && sp < stack.low + kNearEnd;
  // Since glibc 2.42 the guard is a part of the stack's mapping (MADV_GUARD_INSTALL): its pages are
  // listed as writable, but are not even readable.
  char byte;
  const std::uint64_t distance = address < sp ? sp - address : address - sp;
  return address < stack.high && distance <= kNearEnd &&
         !symbols::read_own_memory(hook, address, &byte, sizeof byte);
}

}  // namespace oomrec::stack
