#include "recorder/lua/states.h"

#include <algorithm>
#include <cstring>

#include "common/machine/instructions.h"
#include "recorder/python/interpreter.h"
#include "recorder/symbols/elf_symbols.h"

namespace oomrec::stack {
namespace {

// A state, and the outermost word of the stack that points to it.
struct Found {
  LuaState state;
  std::uint64_t cell;
};

class Search {
 public:
  Search(InHook hook, const LuaStateLayout& at, LuaCache& cache) noexcept
      : hook_(hook), at_(at), cache_(cache) {}

  // All words of the memory, from the outermost on. Most of those that may be a pointer to a state
  // are none, and a system call for each takes long: first only those to blocks that are known.
  void in(std::uint64_t low, std::uint64_t high) noexcept {
    in(low, high, Among::known_blocks);
    if (found_ == 0) in(low, high, Among::all);
  }

  void add(std::uint64_t word, std::uint64_t cell) noexcept {
    cache_.candidates[count_] = {word, cell};
    if (++count_ == LuaCache::kCandidates) check();
  }

  // Adds what is a running state of those considered.
  void check() noexcept {
    for (std::uint32_t i = 0; i != count_; ++i)
      cache_.pieces.add(cache_.candidates[i].address, cache_.headers[i], sizeof cache_.headers[i],
                        block_of(cache_.candidates[i].address));
    cache_.pieces.read(hook_);
    for (std::uint32_t i = 0; i != count_; ++i) judge(i);
    count_ = 0;
  }

  bool are_different() const noexcept {
    for (std::uint32_t i = 1; i < found_; ++i)
      for (std::uint32_t other = 0; other != i; ++other)
        if (all_[i].state.address == all_[other].state.address) return false;
    return true;
  }

  std::span<const Found> found() const noexcept { return {all_, found_}; }  // the outermost first

 private:
  enum class Among : bool { known_blocks, all };

  void in(std::uint64_t low, std::uint64_t high, Among among) noexcept {
    constexpr std::uint64_t kMost = 64 * 1024;
    auto& words = cache_.words;
    std::memset(cache_.seen, 0, sizeof cache_.seen);
    low_ = low;
    high_ = high;
    for (std::uint64_t end = std::min(high, low + kMost); end > low;) {
      const std::uint64_t from = std::max(low, (end - 1) & ~std::uint64_t{sizeof words - 1});
      if (!symbols::read_own_memory(hook_, from, words, end - from)) break;
      for (std::uint64_t cell = end; cell > from;) {
        cell -= 8;
        const std::uint64_t word = words[(cell - from) / 8];
        if (may_be_state(word) && !was_seen(word) && (among == Among::all || is_in_block(word)))
          add(word, cell);
      }
      end = from;
    }
    check();
  }

  void judge(std::uint32_t number) noexcept {
    const LuaState state{.address = cache_.candidates[number].address,
                         .global = word_of(number, at_.global),
                         .call = word_of(number, at_.call),
                         .stack = word_of(number, at_.stack),
                         .base = word_of(number, kJitBase)};
    const unsigned char* const header = cache_.headers[number];
    if (header[at_.tag_at] != at_.tag || header[at_.status] != 0 || !is_global(state.global) ||
        state.call == 0 || is_base(state, state.call))
      return;
    if (found_ == kLuaStates) {  // the outermost goes
      std::move(all_ + 1, all_ + kLuaStates, all_);
      --found_;
    }
    all_[found_++] = {state, cache_.candidates[number].cell};
  }

  bool is_in_block(std::uint64_t state) const noexcept {
    return g_is_block != nullptr && g_is_block(block_of(state), sizeof cache_.headers[0]);
  }

  std::uint64_t word_of(std::uint32_t number, std::uint16_t offset) const noexcept {
    return load<std::uint64_t>(reinterpret_cast<std::uint64_t>(cache_.headers[number] + offset));
  }

  std::uint64_t block_of(std::uint64_t state) const noexcept {
    const bool is_in_global = at_.is_main_thread_there && state == main_thread_of(cache_.global);
    return is_in_global ? cache_.global : state - at_.before;
  }
  std::uint64_t main_thread_of(std::uint64_t global) const noexcept {
    return global + static_cast<std::uint64_t>(std::int64_t{at_.main_thread});
  }

  bool may_be_state(std::uint64_t word) const noexcept {
    constexpr std::uint64_t kLowest = 1 << 16;
    return word % 8 == 0 && word >= kLowest && word >> 47 == 0 && (word < low_ || word >= high_) &&
           !is_lua_code(word);
  }

  bool was_seen(std::uint64_t word) noexcept {
    constexpr std::uint32_t kProbes = 8;
    for (std::uint32_t probe = 0; probe != kProbes; ++probe) {
      std::uint64_t& slot =
          cache_.seen[((word * 0x9e3779b97f4a7c15u >> 32) + probe) % std::size(cache_.seen)];
      if (slot == word) return true;
      if (slot != 0) continue;
      slot = word;
      return false;
    }
    return false;
  }

  // Whether it is a global_State: its main thread belongs to it.
  bool is_global(std::uint64_t global) noexcept {
    if (global == cache_.global && global != 0) return true;
    std::uint64_t main = main_thread_of(global);
    if (global % 8 != 0 ||
        (!at_.is_main_thread_there && !symbols::read_own_memory(hook_, main, &main, sizeof main)))
      return false;
    for (std::uint64_t further = 0; further <= at_.further; further += 8) {
      std::uint64_t words[4];
      if (!symbols::read_own_memory(hook_, main - further, words, sizeof words) ||
          load<std::uint8_t>(reinterpret_cast<std::uint64_t>(words) + at_.tag_at) != at_.tag ||
          words[at_.global / 8] != global)
        continue;
      cache_.global = global;
      return true;
    }
    return false;
  }

  const InHook hook_;
  const LuaStateLayout& at_;
  LuaCache& cache_;
  std::uint64_t low_ = 0, high_ = 0;
  std::uint32_t count_ = 0, found_ = 0;
  Found all_[kLuaStates];
};

}  // namespace

LuaCells& lua_cells_of(LuaCache& cache, std::uint64_t chain) noexcept {
  return cache.cells[(chain >> 32) % std::size(cache.cells)];
}

std::uint32_t running_states(InHook hook, const LuaStateLayout& at, LuaCache& cache,
                             LuaCells& known, std::span<LuaState, kLuaStates> states) noexcept {
  const auto copy = [&](const Search& search) noexcept {
    std::uint32_t count = 0;
    for (std::size_t i = search.found().size(); i-- != 0;)
      states[count++] = search.found()[i].state;
    return count;
  };
  if (!known.may_run) return 0;
  // The same native frames have resumed as many.
  if (known.count != 0) {
    Search search{hook, at, cache};
    for (std::uint32_t i = known.count; i-- != 0;)
      search.add(machine::load_word(known.cells[i]), known.cells[i]);
    search.check();
    if (search.found().size() == known.count && search.are_different()) return copy(search);
  }
  Search search{hook, at, cache};
  search.in(known.stack.sp, known.stack.end);
  const std::span<const Found> found = search.found();
  known.count = found.size() > LuaCells::kMost ? 0 : static_cast<std::uint32_t>(found.size());
  for (std::uint32_t i = 0; i != known.count; ++i) known.cells[i] = found[known.count - 1 - i].cell;
  if (found.empty()) known.may_run = false;  // as in a function of C that no Lua has called
  return copy(search);
}

}  // namespace oomrec::stack
