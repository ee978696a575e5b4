// From a call into this library to a node of the session's trie.
#include "recorder/stack/capture.h"

#include <algorithm>
#include <utility>

#include "common/session/view.h"
#include "common/system/memory.h"
#include "common/text/own_code.h"
#include "recorder/python/attach.h"
#include "recorder/python/chain_cache.h"
#include "recorder/python/waiting.h"
#include "recorder/python/walk.h"
#include "recorder/session/writer.h"
#include "recorder/stack/intern.h"
#include "recorder/stack/java.h"
#include "recorder/stack/lua_loops.h"
#include "recorder/stack/merge.h"
#include "recorder/stack/odd_frames.h"
#include "recorder/stack/quick_node.h"
#include "recorder/stack/rules.h"
#include "recorder/stack/self_check.h"
#include "recorder/stack/walk_cache.h"

namespace oomrec::stack {
namespace {

constinit AddressRange g_own_code;

[[gnu::always_inline]] inline Registers registers_here() noexcept {
  Registers now;
  machine::read_registers(now.pc, now.sp, now.bp);
  return now;
}

// The frame that called the active hook. Without a hook (unit tests): this function's frame.
[[gnu::always_inline]] inline Registers start_of_walk() noexcept {
  const Registers here = registers_here();
  const machine::CalleeFrame frame = HookScope::frame();
  if (!frame) return here;
  return {frame.pc(), frame.sp(), frame.bp(), false};
}

// Fills in the words of the innermost `count` frames.
void name_frames(InHook hook, ThreadStacks& thread, const NativeStack& stack,
                 std::uint32_t count) noexcept {
  for (NativeFrame* frame = stack.frames; frame != stack.frames + count; ++frame) {
    if (frame->word != 0) continue;
    const std::uint64_t address = frame->exact ? frame->pc : frame->pc - 1;
    CodeRange& code = thread.code[(address >> 20) % kCodeRanges];
    if (address - code.start >= code.bytes) [[unlikely]]
      code = code_range_at(hook, address);
    frame->word = session::native_frame(code.module, frame->pc - code.base,
                                        {.exact = frame->exact, .guessed = frame->guessed});
    if (code.module != 0) continue;
    if (const std::uint64_t line = java_frame(hook, frame->pc)) frame->word = line;
  }
}

// A module was unloaded: everything found by address is invalid.
void discard_rules(InHook hook) noexcept {
  clear_rules(hook);
  invalidate_caches();  // in this order: no walk that begins later meets an old rule
  python_modules_unloaded(hook);
  java_modules_unloaded(hook);
  lua_modules_unloaded(hook);
  if (session::g_session.active()) {
    session::g_session.header().module_generation.fetch_add(1, std::memory_order_relaxed);
  }
}

// The calling thread's native frames from `at` outwards, without this library's own.
NativeStack program_stack_from(InHook hook, const Registers& at, ThreadStacks& thread) noexcept {
  NativeStack stack = cached_unwind(hook, at, thread);
  while (stack.count != 0 && g_own_code.holds(stack.frames->pc)) [[unlikely]] {
      ++stack.frames;
      --stack.count;
    }
  if (stack.count == 0 || stack.count > session::kMaxFrames) [[unlikely]] {
    const std::uint32_t kept = std::min(stack.count, session::kMaxFrames);
    stack.reused -= std::min(stack.reused, stack.count - kept);
    stack.count = kept;
    stack.truncated = true;
  }
  stack.reused = std::min(stack.reused, stack.count);
  return stack;
}

}  // namespace

void set_own_code(const AddressRange& range) noexcept { g_own_code = range; }
bool is_own_code(std::uint64_t pc) noexcept { return g_own_code.holds(pc); }

[[gnu::noinline]] NativeStack program_stack(InHook hook, ThreadStacks& thread) noexcept {
  return program_stack_from(hook, start_of_walk(), thread);
}

void start() noexcept {
  const InHook hook = OutsideHooks::in_hook();
  start_modules(hook);
  const std::uint32_t slot = module_slot_at(hook, registers_here().pc);
  if (slot != 0) g_own_code = loaded_module(slot).mapped;
  start_odd_frames(hook);
  if constexpr (kSelfCheck) start_self_check(hook);
  python_start();
}

namespace {

// The node of a stack below `root`: its outermost `reused` frames are those of the thread's last
// stack, then follow `count` fresh ones. *full: the trie is full, and this is the longest prefix.
std::uint32_t intern_stack(InHook hook, MergedCache& cache, std::uint32_t reused,
                           std::uint32_t count, bool* full) noexcept {
  const std::uint32_t comparable = cache.count;
  const auto innermost = [&] {
    return cache.count == 0 ? cache.root : cache.frames[cache.count - 1].node;
  };
  const auto keep = [&](const MergedFrame& fresh, std::uint32_t node, std::uint32_t hash) {
    MergedFrame& frame = cache.frames[cache.count++];
    frame = fresh;
    frame.node = node;
    frame.hash = hash;
  };
  cache.count = reused;
  while (count != 0 && cache.count < comparable &&
         cache.frames[cache.count].word == cache.fresh[count - 1].word)
    keep(cache.fresh[--count], cache.frames[cache.count].node, cache.frames[cache.count].hash);
  const std::uint32_t hash =
      cache.count == 0 ? hash_of_node(cache.root) : cache.frames[cache.count - 1].hash;
  const std::uint32_t interned = intern(hook, innermost(), hash, {cache.fresh, count});
  *full = interned != count;
  for (std::uint32_t i = 0; i != interned; ++i) {
    --count;
    keep(cache.fresh[count], cache.fresh[count].node, cache.fresh[count].hash);
  }
  return innermost();
}

std::uint32_t era_of(const ThreadStacks& thread) noexcept {
  return thread.era.load(std::memory_order_relaxed) & ~kStalled;
}

void begin_root(MergedCache& cache, std::uint32_t root) noexcept {
  if (cache.root == root) return;
  cache.root = root;
  cache.count = 0;
}

// Merges both chains and interns the result below `group`. *whole: all of it has a node.
std::uint32_t merge_and_intern(InHook hook, ThreadStacks& thread, NativeStack native,
                               PythonStack python, bool in_handler, std::uint32_t group,
                               bool* whole) noexcept {
  MergedCache& cache = thread.merged;
  name_frames(hook, thread, native, native.count - std::min(native.count, cache.native));
  if (cache.era != era_of(thread)) [[unlikely]] {  // its nodes may be other stacks' now
    cache.era = era_of(thread);
    cache.root = cache.count = 0;
    cache.joinable = false;
  }
  native.reused = cache.native;
  python.reused = cache.python;
  const bool may_join =
      !native.truncated && !python.truncated && (!in_handler || python.count == 0);
  const bool joins = may_join && cache.joinable && cache.root == group;
  Join join = joins ? join_of(cache, native, python) : Join{};
  Merged merged = merge(hook, native, python, join, cache.fresh, session::kMaxFrames - join.frames);
  if (!merged.regular && join.frames != 0) {
    join = {};
    merged = merge(hook, native, python, join, cache.fresh, session::kMaxFrames);
  }
  cache.joinable = may_join && merged.regular;
  cache.native = native.count;
  cache.python = python.count;
  const std::uint64_t cut = session::special_frame(session::SpecialFrame::truncated, 0);
  bool truncated = native.truncated || python.truncated || merged.cut;
  std::uint32_t root = group;
  if (truncated) {
    if (const std::uint32_t marked = intern(hook, root, cut); marked != 0) root = marked;
  }
  begin_root(cache, root);
  bool full = false;
  std::uint32_t node = intern_stack(hook, cache, join.frames, merged.count, &full);
  if (full) {  // mark that frames are missing
    if (const std::uint32_t marked = intern(hook, node, cut); marked != 0) node = marked;
  }
  *whole = !truncated && !full;
  if (!*whole && session::g_session.active()) {
    session::g_session.header().truncated_stacks.fetch_add(1, std::memory_order_relaxed);
  }
  return node;
}

}  // namespace

namespace {

// The Python package of the innermost frame that is in one's library; empty: none is.
std::string_view package_of(InHook hook, const NativeStack& native) noexcept {
  const session::View view = session::g_session.view();
  std::uint32_t last = 0;
  for (std::uint32_t i = 0; i != native.count; ++i) {
    const NativeFrame& frame = native.frames[i];
    const std::uint64_t address = frame.pc - (frame.exact ? 0 : 1);
    const std::uint32_t id = module_search_is_slow()
                                 ? loaded_module(known_module_slot_at(address)).id.load()
                                 : module_at(hook, address).id;
    session::Module module{};
    if (id == 0 || std::exchange(last, id) == id ||
        !view.read(session::TableId::modules, id, module))
      continue;
    const std::string_view package = text::package_of(view.string(module.path));
    if (!package.empty()) return package;
  }
  return {};
}

// The node of the Python frames that wait for this thread, below `group`; `group`: of none.
// walked(): its native stack.
template <class Walked>
[[gnu::noinline]] std::uint32_t waiting_node(InHook hook, const PythonStack& python,
                                             std::uint32_t group, Walked walked) noexcept {
  std::uint64_t words[48];
  std::uint32_t node = group;
  std::size_t left =
      python.count != 0 ? calling_frames(hook, python, words) : waiting_frames(hook, words);
  if (left == 0 && python.count == 0 && may_be_waited_for()) {
    const std::string_view package = package_of(hook, walked());
    if (!package.empty()) left = frames_calling(hook, package, words);
  }
  for (; left != 0 && node != 0; --left) node = intern(hook, node, words[left - 1]);
  return node != 0 ? node : group;
}

// In place of a chain of Python where Lua is loaded and does not run: quick_node(), which knows
// nothing of Lua, then finds no stack.
constexpr std::uint64_t kNoLua = 1;

// The functions of Lua that the thread runs. walked(): its native stack, whose chain is known.
template <class Walked>
[[gnu::noinline]] PythonStack lua_frames(InHook hook, const Registers& at, ThreadStacks& thread,
                                         std::uint64_t chain, Walked walked) noexcept {
  if (thread.lua == nullptr)
    thread.lua = static_cast<LuaCache*>(system::map_private(sizeof(LuaCache)));
  if (thread.lua == nullptr) return {};
  if (!knows_lua_chain(*thread.lua, chain)) {
    const NativeStack& native = walked();
    const std::span frames{native.frames, native.count};
    const bool has_interpreter =
        std::ranges::any_of(frames, [](const NativeFrame& frame) { return is_lua_code(frame.pc); });
    add_lua_chain(*thread.lua, {chain, at.sp, frames.empty() ? at.sp : frames.back().sp},
                  has_interpreter);
  }
  return lua_stack(hook, *thread.lua, chain);
}

std::uint32_t capture_from(InHook hook, const Registers& at, ThreadStacks& thread,
                           std::uint32_t group, Waiting waiting) noexcept {
  const std::uint64_t salt = session::salt_of(era_of(thread));
  const bool has_stacks = thread.generation != 0;
  MergedCache& cache = thread.merged;
  CachedWalk* cached_walk =
      std::exchange(thread.walks.searched, false) ? nullptr : find_walk(hook, at, thread);
  std::uint64_t chain = cached_walk != nullptr ? cached_walk->chain : 0;  // of the native frames
  CachedStack stack{0, 0, group, 0};
  NativeStack native{};  // not walked yet
  const auto walk = [&] {
    native = program_stack_from(hook, at, thread);
    cache.native = std::min(cache.native, native.reused);
    if (chain == 0 && native.count != 0) chain = native.frames->chain;
  };
  if (chain == 0) walk();
  const bool in_handler = native.truncated || native.interrupted;
  PythonStack python = python_stack(hook, thread.python, in_handler);
  cache.python = std::min(cache.python, python.reused);
  const bool is_walked = native.count != 0;
  const bool may_run_lua = has_lua() && python.count == 0 && !in_handler && chain != 0;
  if (may_run_lua) [[unlikely]] {
    python = lua_frames(hook, at, thread, chain, [&]() noexcept -> const NativeStack& {
      if (native.count == 0) walk();
      return native;
    });
  }
  if (python.count != 0)
    stack.python = python.frames[python.count - 1].chain;
  else if (may_run_lua)
    stack.python = kNoLua;
  if (waiting == Waiting::included && !in_handler) {
    stack.root = waiting_node(hook, python, group, [&]() noexcept -> const NativeStack& {
      if (native.count == 0) walk();
      return native;
    });
    thread.is_waited_for = stack.root != group;
    group = stack.root;
  }
  stack.native = chain ^ salt;

  CachedStack& cached = slot_of(thread, stack);
  const bool is_cacheable = !in_handler && !python.truncated;
  const auto add_to_walk = [&]() noexcept {  // for quick_node()
    if (cached_walk == nullptr) cached_walk = walk_with_chain(thread, at, chain);
    if (cached_walk == nullptr) return;
    cached_walk->python = stack.python ^ salt;
    cached_walk->root = group;
    cached_walk->node = cached.node;
  };
  if (is_cacheable && has_stacks && is_same(cached, stack)) {
    stack.node = cached.node;
    if constexpr (kSelfCheck)
      if (!may_run_lua) check_cached_stack(hook, at, thread, python, cached);
    add_to_walk();
    if (is_walked) count_needless_walk(thread);
    return stack.node;
  }
  if (native.count == 0) walk();
  if (may_run_lua && python.count != 0) {
    std::uint64_t loops[32];
    place_lua_frames(*thread.lua, python.count, {loops, lua_loops(native, loops)});
  }
  bool whole = false;
  const std::uint64_t nodes = nodes_ever();
  stack.node = merge_and_intern(hook, thread, native, python, in_handler, group, &whole);
  if constexpr (kSelfCheck)
    if (!may_run_lua) check_merged(hook, thread, native, python, in_handler);
  if (is_cacheable && whole) {
    cached = stack;
    add_to_walk();
    if (nodes_ever() == nodes) count_needless_walk(thread);
  }
  return stack.node;
}

}  // namespace

[[gnu::noinline]] std::uint32_t capture(InHook hook, ThreadStacks& thread, std::uint32_t group,
                                        Waiting waiting) noexcept {
  const Registers at = start_of_walk();
  UsesNodes uses;
  uses.begin(thread.era);  // for a caller that only wants to know the stack
  for (;;) {
    const std::uint32_t node = capture_from(hook, at, thread, group, waiting);
    if (!is_given_up(thread.era)) [[likely]] {
      uses.end();
      return node;
    }
    // This thread slept so long that others stopped waiting for it. Its node may be another
    // stack's.
    UsesNodes::announce(thread.era);
  }
}

[[gnu::noinline]] std::uint64_t python_chain(InHook hook, ThreadStacks& thread) noexcept {
  const PythonStack python = python_stack(hook, thread.python);
  thread.merged.python = std::min(thread.merged.python, python.reused);
  if (python.truncated) return kNoPythonChain;
  return python.count == 0 ? 0 : python.frames[python.count - 1].chain;
}

[[gnu::noinline]] std::uint32_t current_activations(InHook hook, ThreadStacks& thread,
                                                    std::span<Activation> activations) noexcept {
  UsesNodes uses;  // for its modules
  uses.begin(thread.era);
  const NativeStack native = program_stack_from(hook, start_of_walk(), thread);
  thread.merged.native = std::min(thread.merged.native, native.reused);
  const auto count = std::min(native.count, static_cast<std::uint32_t>(activations.size()));
  for (std::uint32_t i = 0; i < count; ++i) {
    const NativeFrame& frame = native.frames[i];
    activations[i] = {frame.pc, frame.sp, frame.bp};
  }
  uses.end();
  return count;
}

void reset_thread(InHook, ThreadStacks& thread) noexcept {
  for (StackRange& range : thread.ranges) range = {};
  thread.next_range = 0;
  if (thread.generation != 0) clear_caches(thread);
}

void on_modules_unloaded(InHook hook) noexcept {
  if (!modules_still_loaded(hook)) discard_rules(hook);
}

void check_next_module(InHook hook) noexcept {
  if (!next_module_still_loaded(hook)) discard_rules(hook);
}

void reset_after_fork(InHook hook) noexcept {
  invalidate_caches();
  reset_module_ids(hook);
  reset_nodes(hook);
  python_reset_after_fork(hook);
  java_reset_after_fork();
}

}  // namespace oomrec::stack
