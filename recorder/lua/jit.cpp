// LuaJIT keeps its calls on Lua's stack: below the values of each, its function, and a word by
// which the next one outwards is found: the instruction where that goes on, whose call tells how
// far away it is, or a distance. The lowest bits tell which (lj_frame.h).
//
// While compiled code runs, the innermost function is the one that entered it, at an unknown
// instruction.
#include <algorithm>

#include "common/machine/lua_frames.h"
#include "recorder/lua/calls.h"
#include "recorder/symbols/elf_symbols.h"

namespace oomrec::stack {
namespace {

using symbols::read_own_memory;

enum Type : std::uint64_t { kOfLua, kOfC, kContinuation, kVararg };
constexpr std::uint64_t kTypeBits = 3, kDistanceBits = ~std::uint64_t{7};
constexpr std::uint64_t kAddressBits = (std::uint64_t{1} << 47) - 1;

class JitWalk {
 public:
  JitWalk(InHook hook, LuaCache& cache) noexcept : hook_(hook), cache_(cache) { cache.count = 0; }

  // False: there are more.
  bool add_calls(const LuaState& state) noexcept {
    const std::uint64_t compiled = base_of_compiled(state);
    std::uint64_t instruction = compiled == 0 ? saved_instruction(state) : 0;
    bool is_shown = true;  // not the copy that a function with "..." has of its frame
    bottom_ = state.stack + 8;
    for (std::uint64_t frame = (compiled == 0 ? state.base : compiled) - 8; frame > bottom_;) {
      if (cache_.count == kLuaCalls) return false;
      const std::uint64_t link = word_at(frame);
      const std::uint64_t function = word_at(frame - 8) & kAddressBits;
      const auto type = static_cast<Type>(link & kTypeBits);
      if (is_shown && function != state.address) {
        cache_.calls[cache_.count++] = {.address = frame,
                                        .function = function,
                                        .outer = 0,
                                        .instruction = instruction,
                                        .stack = state.stack,
                                        .is_of_lua = false,
                                        .is_fresh = type == kOfC,
                                        .is_innermost = false};
      }
      is_shown = type != kVararg;
      std::uint64_t distance = link & kDistanceBits;
      if (type == kOfLua) {
        std::uint32_t call = 0;
        if (!read_own_memory(hook_, link - sizeof call, &call, sizeof call)) return true;
        distance = 8 * (2 + (call >> 8 & 0xff));
        instruction = link;
      } else if (type == kContinuation) {
        instruction = word_at(frame - 16);
      } else if (type == kOfC) {
        instruction = 0;
      }
      if (distance == 0 || distance > frame) return true;
      frame -= distance;
    }
    return true;
  }

  void find_functions_of_lua() noexcept {
    constexpr std::uint16_t kKind = 10;  // of a GCfunc; 0: of Lua
    constexpr std::uint16_t kTag = 9;
    constexpr unsigned char kFunction = 8;
    for (std::uint32_t i = 0; i != cache_.count; ++i)
      cache_.pieces.add(cache_.calls[i].function, cache_.call_bytes[i], kKind + 1,
                        cache_.calls[i].function);
    cache_.pieces.read(hook_);
    for (std::uint32_t i = 0; i != cache_.count; ++i)
      cache_.calls[i].is_of_lua =
          cache_.call_bytes[i][kTag] == kFunction && cache_.call_bytes[i][kKind] == 0;
  }

 private:
  // Of the innermost call, in the C frame; 0: unknown.
  std::uint64_t saved_instruction(const LuaState& state) const noexcept {
    const std::uint64_t frame = state.call & ~std::uint64_t{3};
    std::uint64_t instruction = 0;
    const bool is_there =
        read_own_memory(hook_, frame + machine::kLuaJitInstruction, &instruction, 8);
    return is_there && instruction != state.address ? instruction : 0;
  }

  // Where the values are of the function that entered compiled code; 0: none runs. The
  // global_State has it behind the state that runs, at a place that each release changes.
  std::uint64_t base_of_compiled(const LuaState& state) noexcept {
    constexpr std::uint64_t kFrom = 192, kWords = 48, kMostStack = 8 << 20;
    high_ = 0;  // the words are not of Lua's stack
    if (!read_own_memory(hook_, state.global + kFrom, cache_.words, kWords * 8)) return 0;
    for (std::uint64_t i = kWords - 1; i != 0; --i) {
      const std::uint64_t base = cache_.words[i];
      if (cache_.words[i - 1] != state.address) continue;
      return base > state.stack && base - state.stack < kMostStack ? base : 0;
    }
    return 0;
  }

  // A word of Lua's stack, of which it reads many at once: the walk goes downwards.
  std::uint64_t word_at(std::uint64_t address) noexcept {
    if (address < low_ || address >= high_) {
      high_ = address + 8;
      low_ = std::max(bottom_ - 8, high_ - std::min<std::uint64_t>(high_, sizeof cache_.words));
      if (address % 8 != 0 || low_ >= high_ ||
          !read_own_memory(hook_, low_, cache_.words, high_ - low_)) {
        high_ = 0;
        return 0;
      }
    }
    return cache_.words[(address - low_) / 8];
  }

  const InHook hook_;
  LuaCache& cache_;
  std::uint64_t bottom_ = 0, low_ = 0, high_ = 0;
};

}  // namespace

bool read_jit_calls(InHook hook, LuaCache& cache, std::span<const LuaState> states) noexcept {
  JitWalk walk{hook, cache};
  const bool is_whole = std::ranges::all_of(
      states, [&](const LuaState& state) noexcept { return walk.add_calls(state); });
  walk.find_functions_of_lua();
  return is_whole;
}

}  // namespace oomrec::stack
