#include "recorder/lua/lua.h"

#include <algorithm>
#include <atomic>

#include "recorder/lua/layout.h"
#include "recorder/lua/lines.h"
#include "recorder/lua/states.h"
#include "recorder/python/codes.h"
#include "recorder/python/interpreter.h"
#include "recorder/symbols/elf_symbols.h"

namespace oomrec::stack {
namespace {

struct Module {
  std::atomic<const LuaLayout*> layout;  // release; nullptr: none is loaded that we know
  std::atomic<std::uint64_t> start, end;
};
constinit Module g_lua{};

// One walk over the calls of the running states.
class CallWalk {
 public:
  // Most calls are those of the thread's last walk, so they are read at once.
  CallWalk(InHook hook, const LuaLayout& at, LuaCache& cache) noexcept
      : hook_(hook),
        at_(at),
        cache_(cache),
        call_bytes_(at.call_status + (at.version < kLuaWideStatus ? 2u : 4u)) {
    for (std::uint32_t i = 0; i != cache.count; ++i)
      cache.pieces.add(cache.calls[i].address, cache.call_bytes[i], call_bytes_,
                       cache.calls[i].address);
    cache.pieces.read(hook);
    for (std::uint32_t i = 0; i != cache.count; ++i)
      cache.calls[i] = call_in(cache.calls[i].address, cache.call_bytes[i]);
  }

  PythonStack stack(std::span<const LuaState> states) noexcept {
    for (const LuaState& state : states) add_calls(state);
    std::copy_n(cache_.fresh_calls, count_, cache_.calls);
    cache_.count = count_;
    find_known_lines();
    for (std::uint32_t i = 0; i != count_; ++i) add_frame(i);
    std::reverse(cache_.frames, cache_.frames + shown_);
    std::uint64_t chain = 0;
    for (std::uint32_t i = 0; i != shown_; ++i) {
      PythonFrame& frame = cache_.frames[i];
      const std::uint64_t inside = frame.marker - cache_.frames[shown_ - 1].marker;
      frame.chain = chain = chain_of(chain, frame.word, inside);
      frame.shown = i + 1;
    }
    return {cache_.frames, shown_, 0, truncated_};
  }

 private:
  static_assert(kLuaCallBytes % 8 == 0);

  LuaCall call_in(std::uint64_t address, const unsigned char* bytes) const noexcept {
    const auto word = [&](std::uint16_t offset) noexcept {
      return load<std::uint64_t>(reinterpret_cast<std::uint64_t>(bytes + offset));
    };
    const auto status = reinterpret_cast<std::uint64_t>(bytes + at_.call_status);
    return {.address = address,
            .function = word(0),
            .outer = word(kLuaCallOuter),
            .instruction = word(at_.call_savedpc),
            .status = at_.version < kLuaWideStatus ? load<std::uint16_t>(status)
                                                   : load<std::uint32_t>(status),
            .stack = 0};
  }

  LuaCall call_at(std::uint64_t address) noexcept {
    for (std::uint32_t left = cache_.count; left != 0; --left) {
      const LuaCall& call = cache_.calls[next_];
      next_ = (next_ + 1) % cache_.count;
      if (call.address == address) return call;
    }
    unsigned char bytes[kLuaCallBytes];
    return symbols::read_own_memory(hook_, address, bytes, call_bytes_) ? call_in(address, bytes)
                                                                        : LuaCall{};
  }

  void add_calls(const LuaState& state) noexcept {
    for (std::uint64_t address = state.call; address != 0 && !is_base(state, address);) {
      LuaCall call = call_at(address);
      if (count_ == kLuaCalls) {
        truncated_ = true;
        return;
      }
      call.stack = state.stack;
      address = call.outer;
      cache_.fresh_calls[count_++] = call;
    }
  }

  bool is_of_lua(const LuaCall& call) const noexcept {
    return ((call.status & at_.kind_bit) != 0) != at_.is_bit_of_c;
  }

  LuaLine& slot_of(const LuaCall& call) const noexcept {
    return cache_.lines[(call.instruction * 0x9e3779b97f4a7c15u >> 32) % std::size(cache_.lines)];
  }
  std::uint64_t stamp() const noexcept {
    return cache_.epoch << 32 | g_code_era.load(std::memory_order_acquire);
  }

  // Reads the prototypes of what has a line.
  void find_known_lines() noexcept {
    for (std::uint32_t i = 0; i != count_; ++i) {
      const LuaCall& call = cache_.calls[i];
      const LuaLine& line = slot_of(call);
      is_known_[i] =
          is_of_lua(call) && line.instruction == call.instruction && line.stamp == stamp();
      if (is_known_[i])
        cache_.pieces.add(line.prototype, cache_.prototypes[i], kLuaPrototypeBytes, line.prototype);
    }
    cache_.pieces.read(hook_);
  }

  void add_frame(std::uint32_t number) noexcept {
    const LuaCall& call = cache_.calls[number];
    if (!is_of_lua(call)) return;
    LuaLine& line = slot_of(call);
    const bool is_same =
        is_known_[number] && line.instruction == call.instruction &&
        std::ranges::equal(prototype_in(at_, cache_.prototypes[number]).words, line.words);
    if (!is_same) {
      const std::uint64_t now = stamp();
      if (!find_line(hook_, at_, call, line)) line = {};
      line.stamp = now;
    }
    if (line.frame != 0) cache_.frames[shown_++] = {line.frame, loops_, 0, 0};
    const bool is_last = number + 1 == count_ || cache_.calls[number + 1].stack != call.stack;
    loops_ += at_.fresh_bit == 0 || (call.status & at_.fresh_bit) != 0 || is_last;
  }

  const InHook hook_;
  const LuaLayout& at_;
  LuaCache& cache_;
  const std::uint32_t call_bytes_;
  std::uint32_t next_ = 0;   // of the last walk's calls, that which is expected next
  std::uint32_t count_ = 0;  // calls
  std::uint32_t shown_ = 0;  // frames
  std::uint64_t loops_ = 0;  // that were left
  bool truncated_ = false;
  bool is_known_[kLuaCalls];
};

bool find_lua(InHook hook, std::uint64_t start, std::uint64_t end) noexcept {
  symbols::ElfSymbols module{hook, start};
  char identity[64] = {};
  const std::uint64_t at = module.address_of(hook, "lua_ident");
  if (at == 0 || !symbols::read_own_memory(hook, at, identity, sizeof identity - 1)) return false;
  const LuaLayout* const layout = lua_layout(lua_version(identity));
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

PythonStack lua_stack(InHook hook, LuaCache& cache, const LuaStackMemory& memory) noexcept {
  const LuaLayout* const at = g_lua.layout.load(std::memory_order_acquire);
  if (at == nullptr) return {};
  LuaState states[kLuaStates];
  const std::uint32_t count = running_states(hook, *at, cache, memory, states);
  return CallWalk{hook, *at, cache}.stack({states, count});
}

void place_lua_frames(LuaCache& cache, std::uint32_t count,
                      std::span<const std::uint64_t> loops) noexcept {
  constexpr std::uint64_t kNowhere = 1;
  for (std::uint32_t i = 0; i != count; ++i) {
    std::uint64_t& marker = cache.frames[i].marker;
    marker = loops.empty() ? kNowhere : loops[std::min<std::uint64_t>(marker, loops.size() - 1)];
  }
}

void clear_lua_cache(LuaCache& cache) noexcept { ++cache.epoch; }

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
