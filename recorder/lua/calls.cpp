#include "recorder/lua/calls.h"

#include <algorithm>

#include "recorder/python/interpreter.h"
#include "recorder/symbols/elf_symbols.h"

namespace oomrec::stack {
namespace {

// Most calls are those of the thread's last walk, so they are read at once.
class CallWalk {
 public:
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

  // False: there are more.
  bool add_calls(const LuaState& state) noexcept {
    for (std::uint64_t address = state.call; address != 0 && !is_base(state, address);) {
      if (count_ == kLuaCalls) return false;
      LuaCall& call = cache_.fresh_calls[count_++] = call_at(address);
      call.stack = state.stack;
      call.is_innermost = address == state.call;
      address = call.outer;
    }
    return true;
  }

  void end() noexcept {
    std::copy_n(cache_.fresh_calls, count_, cache_.calls);
    cache_.count = count_;
  }

 private:
  LuaCall call_in(std::uint64_t address, const unsigned char* bytes) const noexcept {
    const auto word = [&](std::uint16_t offset) noexcept {
      return load<std::uint64_t>(reinterpret_cast<std::uint64_t>(bytes + offset));
    };
    const auto status_at = reinterpret_cast<std::uint64_t>(bytes + at_.call_status);
    const std::uint32_t status = at_.version < kLuaWideStatus ? load<std::uint16_t>(status_at)
                                                              : load<std::uint32_t>(status_at);
    return {.address = address,
            .function = word(0),
            .outer = word(kLuaCallOuter),
            .instruction = word(at_.savedpc),
            .stack = 0,
            .is_of_lua = ((status & at_.kind_bit) != 0) != at_.is_bit_of_c,
            .is_fresh = at_.fresh_bit == 0 || (status & at_.fresh_bit) != 0,
            .is_innermost = false};
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

  const InHook hook_;
  const LuaLayout& at_;
  LuaCache& cache_;
  const std::uint32_t call_bytes_;
  std::uint32_t next_ = 0;  // of the last walk's calls, that which is expected next
  std::uint32_t count_ = 0;
};

}  // namespace

bool read_calls(InHook hook, const LuaLayout& at, LuaCache& cache,
                std::span<const LuaState> states) noexcept {
  CallWalk walk{hook, at, cache};
  const bool is_whole = std::ranges::all_of(
      states, [&](const LuaState& state) noexcept { return walk.add_calls(state); });
  walk.end();
  return is_whole;
}

}  // namespace oomrec::stack
