#include "recorder/lua/lua.h"

#include <algorithm>
#include <atomic>

#include "recorder/lua/calls.h"
#include "recorder/lua/lines.h"
#include "recorder/python/codes.h"
#include "recorder/symbols/elf_symbols.h"

namespace oomrec::stack {
namespace {

struct Module {
  std::atomic<const LuaLayout*> layout;  // release; nullptr: none is loaded that we know
  std::atomic<std::uint64_t> start, end;
};
constinit Module g_lua{};

// Makes frames of the calls.
class Frames {
 public:
  Frames(InHook hook, const LuaLayout& at, LuaCache& cache) noexcept
      : hook_(hook), at_(at), cache_(cache) {}

  PythonStack stack(bool is_whole) noexcept {
    read_known_prototypes();
    for (std::uint32_t i = 0; i != cache_.count; ++i) add(i);
    std::reverse(cache_.frames, cache_.frames + shown_);
    std::uint64_t chain = 0;
    for (std::uint32_t i = 0; i != shown_; ++i) {
      PythonFrame& frame = cache_.frames[i];
      const std::uint64_t inside = frame.marker - cache_.frames[shown_ - 1].marker;
      frame.chain = chain = chain_of(chain, frame.word, inside);
      frame.shown = i + 1;
    }
    return {cache_.frames, shown_, 0, !is_whole};
  }

 private:
  LuaLine& slot_of(const LuaCall& call) const noexcept {
    return cache_.lines[(key_of(call) * 0x9e3779b97f4a7c15u >> 32) % std::size(cache_.lines)];
  }
  // Of what has a line.
  void read_known_prototypes() noexcept {
    const std::uint32_t now = g_code_era.load(std::memory_order_acquire);
    for (std::uint32_t i = 0; i != cache_.count; ++i) {
      const LuaCall& call = cache_.calls[i];
      const LuaLine& line = slot_of(call);
      is_known_[i] = call.is_of_lua && line.key == key_of(call) && line.era == now;
      if (is_known_[i])
        cache_.pieces.add(line.prototype, cache_.prototypes[i], kLuaPrototypeBytes, line.prototype);
    }
    cache_.pieces.read(hook_);
  }

  void add(std::uint32_t number) noexcept {
    const LuaCall& call = cache_.calls[number];
    if (!call.is_of_lua) return;
    LuaLine& line = slot_of(call);
    const bool is_same =
        is_known_[number] && line.key == key_of(call) &&
        std::ranges::equal(prototype_in(at_, cache_.prototypes[number]).words, line.words);
    if (!is_same) {
      const std::uint32_t now = g_code_era.load(std::memory_order_acquire);
      if (!find_line(hook_, at_, call, line)) line = {};
      line.key = key_of(call);
      line.era = now;
    }
    if (line.frame != 0) cache_.frames[shown_++] = {line.frame, loops_, 0, 0};
    const bool is_last = number + 1 == cache_.count || cache_.calls[number + 1].stack != call.stack;
    loops_ += call.is_fresh || is_last;
  }

  const InHook hook_;
  const LuaLayout& at_;
  LuaCache& cache_;
  std::uint32_t shown_ = 0;
  std::uint64_t loops_ = 0;  // that were left
  bool is_known_[kLuaCalls];
};

// nullptr: it is not Lua's interpreter, or of a version that we do not know.
const LuaLayout* layout_of(InHook hook, symbols::ElfSymbols& module) noexcept {
  if (module.address_of(hook, "luaJIT_profile_start") != 0) return &kLuaJitLayout;
  char identity[64] = {};
  const std::uint64_t at = module.address_of(hook, "lua_ident");
  return at != 0 && symbols::read_own_memory(hook, at, identity, sizeof identity - 1)
             ? lua_layout(lua_version(identity))
             : nullptr;
}

bool find_lua(InHook hook, std::uint64_t start, std::uint64_t end) noexcept {
  symbols::ElfSymbols module{hook, start};
  const LuaLayout* const layout = layout_of(hook, module);
  if (layout == nullptr || !prepare_codes()) return false;
  g_lua.start.store(start, std::memory_order_relaxed);
  g_lua.end.store(end, std::memory_order_relaxed);
  g_lua.layout.store(layout, std::memory_order_release);
  return true;
}

}  // namespace

bool has_lua() noexcept { return g_lua.layout.load(std::memory_order_acquire) != nullptr; }

bool is_lua_code(std::uint64_t address) noexcept {
  return address >= g_lua.start.load(std::memory_order_relaxed) &&
         address < g_lua.end.load(std::memory_order_relaxed);
}

bool knows_lua_chain(LuaCache& cache, std::uint64_t chain) noexcept {
  return lua_cells_of(cache, chain).stack.chain == chain;
}

void add_lua_chain(LuaCache& cache, const LuaStackMemory& stack, bool has_interpreter) noexcept {
  lua_cells_of(cache, stack.chain) = {stack, has_interpreter, 0, {}};
}

PythonStack lua_stack(InHook hook, LuaCache& cache, std::uint64_t chain) noexcept {
  const LuaLayout* const at = g_lua.layout.load(std::memory_order_acquire);
  if (at == nullptr) return {};
  LuaState all[kLuaStates];
  const std::span states{all,
                         running_states(hook, at->state, cache, lua_cells_of(cache, chain), all)};
  const bool is_whole = at->version == kLuaJit ? read_jit_calls(hook, cache, states)
                                               : read_calls(hook, *at, cache, states);
  return Frames{hook, *at, cache}.stack(is_whole);
}

void place_lua_frames(LuaCache& cache, std::uint32_t count,
                      std::span<const std::uint64_t> loops) noexcept {
  constexpr std::uint64_t kNowhere = 1;
  for (std::uint32_t i = 0; i != count; ++i) {
    std::uint64_t& marker = cache.frames[i].marker;
    marker = loops.empty() ? kNowhere : loops[std::min<std::uint64_t>(marker, loops.size() - 1)];
  }
}

bool lua_module_loaded(InHook hook, std::uint64_t start, std::uint64_t end) noexcept {
  static constinit std::atomic<bool> g_busy{false};
  if (has_lua() || g_busy.exchange(true)) return false;
  const bool is_found = find_lua(hook, start, end);
  g_busy.store(false, std::memory_order_release);
  return is_found;
}

void lua_modules_unloaded(InHook hook) noexcept {
  const std::uint64_t start = g_lua.start.load(std::memory_order_relaxed);
  std::uint64_t word = 0;
  if (start != 0 && !symbols::read_own_memory(hook, start, &word, sizeof word))
    g_lua.layout.store(nullptr, std::memory_order_relaxed);
}

}  // namespace oomrec::stack
