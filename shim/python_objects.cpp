// Our functions pass their arguments on to the functions that they replace. A tool that sets the
// table later (tracemalloc, memray) calls ours in the same way.
//
// The table is set when the interpreter is attached to: before it starts, for one that is loaded
// with the program. The interpreter itself then sets the table anew if PYTHONMALLOC or -X dev asks
// for it; so our functions are put there again when the first arena is mapped, before any other
// tool has run. Not so in an interpreter that was attached to: another tool that was started since
// calls ours, and ours in front of it would call it in turn. With PYTHONMALLOC=malloc there are no
// arenas, and each object is a block of malloc.
//
// A free-threaded interpreter has a heap of its own (mimalloc) for objects of all sizes, which
// never asks malloc (recorder/process/object_heap.h). It knows no PYTHONMALLOC=malloc, and ends if
// it is asked for it. So with --python-objects, in exact mode, each of its objects is recorded here
// as a block of the heap.
#include "shim/python_objects.h"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "recorder/events/heap.h"
#include "recorder/events/objects.h"
#include "recorder/failures/failures.h"
#include "recorder/process/object_heap.h"
#include "recorder/python/attach.h"
#include "recorder/python/interpreter.h"
#include "recorder/state/state.h"

namespace oomrec::shim {
namespace {

using recorder::FreedObject;
using recorder::Source;

// PyMemAllocatorEx, and of PyMemAllocatorDomain those that use the pool.
struct Allocator {
  void* context;
  void* (*malloc)(void*, std::size_t);
  void* (*calloc)(void*, std::size_t, std::size_t);
  void* (*realloc)(void*, void*, std::size_t);
  void (*free)(void*, void*);
};
enum Domain : int { kMem = 1, kObject = 2 };

// PyObjectArenaAllocator
struct ArenaAllocator {
  void* context;
  void* (*alloc)(void*, std::size_t);
  void (*free)(void*, void*, std::size_t);
};

using GetAllocator = void(int, Allocator*);
using SetAllocator = void(int, Allocator*);
using GetArenaAllocator = void(ArenaAllocator*);
using SetArenaAllocator = void(ArenaAllocator*);

// Whose objects: pymalloc's, or those of the interpreter's own heap.
enum class Heap : bool { pymalloc, own };

constinit PythonObjects g_wanted{};
constinit bool g_are_blocks = false;  // every object of the interpreter's own heap is one

// The largest request that pymalloc serves from its arenas; it passes on larger ones to malloc.
constexpr std::size_t kMostPymallocBytes = 512;

std::uint64_t address_of(const void* object) noexcept {
  return reinterpret_cast<std::uint64_t>(object);
}

template <Heap heap>
Source source_of(std::size_t bytes) noexcept {
  return heap == Heap::pymalloc && bytes > kMostPymallocBytes ? Source::malloc : Source::pool;
}

// True: nothing is to do but the call itself.
template <Heap heap>
[[gnu::always_inline]] inline bool is_unobserved(std::size_t bytes) noexcept {
  if (heap == Heap::own && g_are_blocks) return false;
  if (heap == Heap::own && recorder::t_thread == nullptr) [[unlikely]]
    return recorder::phase() == recorder::Phase::off;
  if (source_of<heap>(bytes) == Source::pool) [[likely]]
    return recorder::passes_unrecorded(Source::pool, bytes);
  if (recorder::is_left_to_heap(bytes)) return true;
  if (!recorder::passes_unrecorded(Source::malloc, bytes)) return false;
  recorder::skip_in_heap(bytes);
  return true;
}

// How many blocks this thread has allocated. Tells whether the pool has passed a request on to
// malloc, which has then recorded it: under the interpreter's debug hooks objects are larger.
std::uint64_t heap_blocks() noexcept {
  const recorder::ThreadState* const thread = recorder::registered_thread();
  if (thread == nullptr) return 0;
  return thread->lane->spaces[static_cast<std::size_t>(Space::heap)].allocated_count.load(
      std::memory_order_relaxed);
}

std::uint32_t weight_of(Source source, std::size_t bytes) noexcept {
  const HookScope scope;
  return scope.outermost() ? recorder::object_weight(scope.in_hook(), source, bytes) : 0;
}

// How many of this thread's mappings have failed.
std::uint64_t failed_mappings() noexcept {
  const recorder::ThreadState* const thread = recorder::registered_thread();
  if (thread == nullptr) return 0;
  return thread->lane->spaces[static_cast<std::size_t>(Space::map)].failed_count.load(
      std::memory_order_relaxed);
}

// The interpreter's own heap has refused an object. If a mapping failed, that is on record.
[[gnu::cold]] void report_failed_object(Api api, std::size_t bytes, std::uint64_t failed) noexcept {
  const KeepErrno keep;
  const HookScope scope;
  if (scope.outermost() && bytes != 0 && failed_mappings() == failed)
    recorder::on_failure(scope.in_hook(), {Space::python, api, bytes}, ENOMEM,
                         recorder::FailedBy::system);
}

// False: the limit has refused it.
bool is_admitted(Api api, std::size_t bytes) noexcept {
  const HookScope scope;
  if (!scope.outermost()) return true;
  recorder::wait_for_session(scope.in_hook(), bytes);
  recorder::Request request{Space::python, api, bytes};
  if (recorder::admits_object(scope.in_hook(), request)) return true;
  recorder::on_failure(scope.in_hook(), request, ENOMEM, recorder::FailedBy::recorder);
  return false;
}

// As hooks of malloc and free do.
template <class Allocate>
void* observe_block(Api api, std::size_t bytes, Allocate allocate) noexcept {
  const HookScope scope;
  if (!scope.outermost()) return allocate();
  recorder::Request request{Space::heap, api, bytes};
  if (!recorder::admits(scope.in_hook(), request, bytes)) {
    recorder::on_failure(scope.in_hook(), request, ENOMEM, recorder::FailedBy::recorder);
    return nullptr;
  }
  scope.leave_recorder();
  void* const block = allocate();
  const KeepErrno keep;
  if (block != nullptr)
    recorder::on_allocate(scope.in_hook(), {Space::heap, api, address_of(block), bytes, 0});
  else if (bytes != 0)
    recorder::on_failure(scope.in_hook(), request, ENOMEM, recorder::FailedBy::system);
  return block;
}
recorder::Released forget_block(Api api, void* block) noexcept {
  const HookScope scope;
  if (!scope.outermost() || block == nullptr) return {};
  return recorder::on_free(scope.in_hook(), Space::heap, api, address_of(block), 0);
}
void restore_block(const recorder::Released& released) noexcept {
  const HookScope scope;
  if (scope.outermost()) recorder::restore(scope.in_hook(), Space::heap, released);
}

// `allocate` makes the call. Inlined, so that the stack starts at the caller of the function that
// replaces the interpreter's.
template <Heap heap, class Allocate>
[[gnu::always_inline]] inline void* observe(Api api, std::size_t bytes,
                                            Allocate allocate) noexcept {
  if (heap == Heap::own && g_are_blocks) return observe_block(api, bytes, allocate);
  if (heap == Heap::own && !is_admitted(api, bytes)) return nullptr;
  const Source source = source_of<heap>(bytes);
  const std::uint32_t weight = weight_of(source, bytes);
  if (source == Source::malloc) recorder::skip_in_heap(bytes);
  const std::uint64_t blocks = heap_blocks();
  const std::uint64_t failed = heap == Heap::own ? failed_mappings() : 0;
  void* const object = allocate();
  if (heap == Heap::own && object == nullptr) report_failed_object(api, bytes, failed);
  const bool is_heaps = source == Source::pool && heap_blocks() != blocks;
  if (object == nullptr || weight == 0 || is_heaps) return object;
  const HookScope scope;
  if (scope.outermost())
    recorder::on_object(scope.in_hook(), source, api, address_of(object), bytes, weight);
  return object;
}

FreedObject forget(Api api, void* object) noexcept {
  const HookScope scope;
  if (!scope.outermost()) return {};
  return recorder::on_object_freed(scope.in_hook(), api, address_of(object));
}

void restore(const FreedObject& freed) noexcept {
  const HookScope scope;
  if (scope.outermost()) recorder::restore_object(scope.in_hook(), freed);
}

// The functions of one domain. Those that the interpreter calls do no more than decide whether the
// call is observed, and end in a jump.
template <Heap heap, Domain domain, Api of_malloc>
struct Functions {
  static constexpr Api kMalloc = of_malloc;
  static constexpr Api kCalloc = static_cast<Api>(static_cast<int>(of_malloc) + 1);
  static constexpr Api kRealloc = static_cast<Api>(static_cast<int>(of_malloc) + 2);
  static constexpr Api kFree = static_cast<Api>(static_cast<int>(of_malloc) + 3);
  static inline constinit Allocator next{};
  // Whether the table has them, or functions of another tool that call them.
  static inline constinit bool is_installed = false;

  static bool may_be_recorded(const void* object) noexcept {
    return (heap == Heap::own && g_are_blocks) || recorder::may_be_recorded_object(object);
  }

  static void* malloc(void* context, std::size_t bytes) noexcept {
    if (is_unobserved<heap>(bytes)) [[likely]]
      return next.malloc(context, bytes);
    return observed_malloc(context, bytes);
  }
  static void* calloc(void* context, std::size_t count, std::size_t size) noexcept {
    std::size_t bytes = 0;
    if (__builtin_mul_overflow(count, size, &bytes) || is_unobserved<heap>(bytes)) [[likely]]
      return next.calloc(context, count, size);
    return observed_calloc(context, count, size);
  }
  static void* realloc(void* context, void* object, std::size_t bytes) noexcept {
    if (!may_be_recorded(object) && is_unobserved<heap>(bytes)) [[likely]]
      return next.realloc(context, object, bytes);
    return observed_realloc(context, object, bytes);
  }
  static void free(void* context, void* object) noexcept {
    if (!may_be_recorded(object)) [[likely]]
      return next.free(context, object);
    return observed_free(context, object);
  }

  [[gnu::noinline]] static void* observed_malloc(void* context, std::size_t bytes) noexcept {
    return observe<heap>(kMalloc, bytes, [=] { return next.malloc(context, bytes); });
  }
  [[gnu::noinline]] static void* observed_calloc(void* context, std::size_t count,
                                                 std::size_t size) noexcept {
    return observe<heap>(kCalloc, count * size, [=] { return next.calloc(context, count, size); });
  }
  [[gnu::noinline]] static void* observed_realloc(void* context, void* object,
                                                  std::size_t bytes) noexcept {
    const auto real = [=] { return next.realloc(context, object, bytes); };
    if (heap == Heap::own && g_are_blocks) {
      const recorder::Released released = forget_block(kRealloc, object);
      void* const moved = observe_block(kRealloc, bytes, real);
      if (moved == nullptr) restore_block(released);
      return moved;
    }
    const bool recorded = recorder::is_recorded_object(object);
    const FreedObject freed = recorded ? forget(kRealloc, object) : FreedObject{};
    const bool left = source_of<heap>(bytes) == Source::malloc && recorder::is_left_to_heap(bytes);
    void* const moved = left ? real() : observe<heap>(kRealloc, bytes, real);
    if (moved == nullptr) restore(freed);
    return moved;
  }
  [[gnu::noinline]] static void observed_free(void* context, void* object) noexcept {
    if (heap == Heap::own && g_are_blocks)
      forget_block(kFree, object);
    else if (recorder::is_recorded_object(object))
      forget(kFree, object);
    next.free(context, object);
  }

  // Puts them into the table, unless they are there, or malloc is.
  static void install(GetAllocator* get, SetAllocator* set) noexcept {
    constexpr int kRaw = 0;
    Allocator present{}, raw{};
    get(domain, &present);
    get(kRaw, &raw);
    if (present.malloc == malloc || present.malloc == nullptr || present.malloc == raw.malloc)
      return;
    if (g_wanted.attaches && is_installed && present.malloc != next.malloc) return;
    next = present;
    is_installed = true;
    Allocator ours{present.context, malloc, calloc, realloc, free};
    set(domain, &ours);
  }

  // Removes them, unless another tool has put its own in front.
  static void remove(GetAllocator* get, SetAllocator* set) noexcept {
    Allocator present{};
    get(domain, &present);
    if (present.malloc != malloc) return;
    set(domain, &next);
    is_installed = false;
  }
};
template <Heap heap>
using MemFunctions = Functions<heap, kMem, Api::PyMem_Malloc>;
template <Heap heap>
using ObjectFunctions = Functions<heap, kObject, Api::PyObject_Malloc>;

// Calls `change` with the interpreter's functions, if it exports them.
template <class Change>
void change_table(Change change) noexcept {
  const stack::Interpreter::Allocators& table = stack::g_interpreter.allocators;
  if (table.get == 0 || table.set == 0) return;
  change(reinterpret_cast<GetAllocator*>(table.get), reinterpret_cast<SetAllocator*>(table.set));
}

template <Heap heap>
void install_in_table() noexcept {
  change_table([](GetAllocator* get, SetAllocator* set) {
    MemFunctions<heap>::install(get, set);
    ObjectFunctions<heap>::install(get, set);
  });
}
template <Heap heap>
void remove_from_table() noexcept {
  change_table([](GetAllocator* get, SetAllocator* set) {
    MemFunctions<heap>::remove(get, set);
    ObjectFunctions<heap>::remove(get, set);
  });
}

constinit ArenaAllocator g_next_arena{};
constinit std::atomic<bool> g_had_arena{false};

// 256 KiB up to 3.9, later a MiB. The stacks of Python's frames come from the same functions, in
// pieces of 16 KiB.
constexpr std::size_t kLeastArenaBytes = std::size_t{256} << 10;

void* map_arena(void* context, std::size_t bytes) noexcept {
  if (bytes < kLeastArenaBytes) return g_next_arena.alloc(context, bytes);
  if (!g_had_arena.exchange(true, std::memory_order_relaxed)) {
    const KeepErrno keep;
    install_in_table<Heap::pymalloc>();
  }
  if (HookScope::idle()) recorder::announce_arena(bytes);
  return g_next_arena.alloc(context, bytes);
}
void unmap_arena(void* context, void* arena, std::size_t bytes) noexcept {
  g_next_arena.free(context, arena, bytes);
}

void observe_arenas() noexcept {
  const stack::Interpreter::Allocators& table = stack::g_interpreter.allocators;
  if (table.get_arena == 0 || table.set_arena == 0) return;
  ArenaAllocator present{};
  reinterpret_cast<GetArenaAllocator*>(table.get_arena)(&present);
  if (present.alloc == map_arena || present.alloc == nullptr) return;
  g_next_arena = present;
  ArenaAllocator ours{present.context, map_arena, unmap_arena};
  reinterpret_cast<SetArenaAllocator*>(table.set_arena)(&ours);
}

void release_arenas() noexcept {
  const stack::Interpreter::Allocators& table = stack::g_interpreter.allocators;
  if (table.get_arena == 0 || table.set_arena == 0) return;
  ArenaAllocator present{};
  reinterpret_cast<GetArenaAllocator*>(table.get_arena)(&present);
  if (present.alloc == map_arena)
    reinterpret_cast<SetArenaAllocator*>(table.set_arena)(&g_next_arena);
}

// The interpreter maps memory for a heap of its own. That it has one, may only be known now; and it
// may have set its table anew.
void on_object_heap(InHook hook) noexcept {
  const KeepErrno keep;
  remove_from_table<Heap::pymalloc>();
  install_in_table<Heap::own>();
  if (stack::g_interpreter.has_own_heap.exchange(true)) return;
  recorder::start_object_heap();
  stack::record_pool_objects(hook, session::PoolObjects::sampled);
}

void on_python(InHook hook) noexcept {
  const KeepErrno keep;
  const bool has_own_heap = stack::g_interpreter.has_own_heap.load(std::memory_order_relaxed);
  if (has_own_heap && g_wanted.every) drop_choice_of_malloc();
  g_are_blocks = has_own_heap && g_wanted.every && recorder::exact();
  if (!g_are_blocks && !g_wanted.sampled) return;
  recorder::g_on_object_heap = on_object_heap;
  if (has_own_heap) {
    install_in_table<Heap::own>();
    if (!g_are_blocks) recorder::start_object_heap();
  } else {
    install_in_table<Heap::pymalloc>();
    observe_arenas();
  }
  stack::record_pool_objects(
      hook, g_are_blocks ? session::PoolObjects::all : session::PoolObjects::sampled);
}

}  // namespace

void drop_choice_of_malloc() noexcept {
  char* const choice = std::getenv("PYTHONMALLOC");
  if (choice != nullptr && std::string_view{choice} == "malloc") *choice = '\0';
}

void start_python_objects(PythonObjects wanted) noexcept {
  g_wanted = wanted;
  stack::g_on_python = on_python;
  if (stack::g_interpreter.ready.load(std::memory_order_acquire))
    on_python(OutsideHooks::in_hook());
}

void stop_python_objects() noexcept {
  stack::g_on_python = nullptr;
  recorder::g_on_object_heap = nullptr;
  if (!stack::g_interpreter.ready.load(std::memory_order_acquire)) return;
  remove_from_table<Heap::pymalloc>();
  remove_from_table<Heap::own>();
  release_arenas();
}

}  // namespace oomrec::shim
