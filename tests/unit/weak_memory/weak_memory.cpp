// The functions that code compiled with -fsanitize=thread calls at each access to memory
// (compiler-rt/lib/tsan/rtl/tsan_interface.h, tsan_interface_atomic.cpp), and what they mean here.
// Compiled without that option.
#include "tests/unit/weak_memory/weak_memory.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <type_traits>

#include "tests/unit/weak_memory/memory.h"

namespace oomrec::weak_memory {

namespace {

enum class Phase : std::uint8_t { off, writing, reading, reading_after_death };

// A load of the reader that could return one of several values.
struct Choice {
  std::size_t taken, possible;
};

struct Model {
  Phase phase = Phase::off;
  Memory memory;
  std::map<unsigned, Thread> writers;
  Thread* thread = nullptr;
  std::vector<Choice> choices;
  std::size_t next_choice = 0;
  bool at_work = false;  // its own copies of memory do not count
};
Model g_model;

// Ends with the model's work on an access.
class Work {
 public:
  Work() { g_model.at_work = true; }
  ~Work() { g_model.at_work = false; }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
};
bool is_off() { return g_model.phase == Phase::off || g_model.at_work; }

[[noreturn]] void end(const char* why) {
  std::fprintf(stderr, "weak_memory: %s\n", why);
  std::abort();
}

std::size_t choose(std::size_t possible) {
  if (possible == 1) return 0;
  if (g_model.next_choice == g_model.choices.size()) g_model.choices.push_back({0, possible});
  const Choice& choice = g_model.choices[g_model.next_choice++];
  if (choice.possible != possible) end("the reader does not repeat what it did");
  return choice.taken;
}

// False: all have been tried.
bool next_choices() {
  auto& choices = g_model.choices;
  while (!choices.empty() && choices.back().taken + 1 == choices.back().possible)
    choices.pop_back();
  if (choices.empty()) return false;
  ++choices.back().taken;
  return true;
}

// An access is about to be made. False: it does not count.
bool begins(std::uintptr_t address) {
  g_model.memory.finish_store();
  return g_model.memory.watches(address);
}

void load(const void* address, std::size_t bytes, Order order) {
  if (is_off()) return;
  const Work work;
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  if (!begins(at)) return;
  if (g_model.phase == Phase::writing) {
    g_model.memory.load_newest(*g_model.thread, at, bytes, order);
  } else if (g_model.phase == Phase::reading) {
    g_model.memory.load_any(*g_model.thread, at, bytes, order, choose);
  }
}

void store(const void* address, std::size_t bytes, Order order, const View* released = nullptr) {
  if (is_off()) return;
  const Work work;
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  if (!begins(at)) return;
  if (g_model.phase != Phase::writing) end("a reader stores to watched memory");
  g_model.memory.store(*g_model.thread, at, bytes, order, released);
}

void fence(Order order) {
  if (is_off()) return;
  const Work work;
  g_model.memory.finish_store();
  Thread& thread = *g_model.thread;
  if (acquires(order)) thread.seen.join(thread.to_acquire);
  if (releases(order)) thread.at_release = thread.seen;
}

// consume counts as acquire, as compilers have it.
Order order_of(int order) {
  switch (order) {
    case __ATOMIC_RELAXED:
      return Order::relaxed;
    case __ATOMIC_CONSUME:
    case __ATOMIC_ACQUIRE:
      return Order::acquire;
    case __ATOMIC_RELEASE:
      return Order::release;
    default:
      return Order::both;
  }
}

// `change` returns the new value.
template <class T, class Change>
T exchange(volatile T* at, int order, Change change) {
  const void* const address = const_cast<const T*>(at);
  load(address, sizeof(T), order_of(order));
  const T old = *at;
  View released;
  if (!is_off())
    released = g_model.memory.newest_view(reinterpret_cast<std::uintptr_t>(address), sizeof(T));
  store(address, sizeof(T), order_of(order), &released);
  *at = change(old);
  return old;
}

template <class T>
bool compare_exchange(volatile T* at, T* expected, T desired, int order, int failure) {
  if (*at != *expected) {
    load(const_cast<const T*>(at), sizeof(T), order_of(failure));
    *expected = *at;
    return false;
  }
  exchange(at, order, [&](T) { return desired; });
  return true;
}

}  // namespace

void watch(const void* start, std::size_t bytes) {
  const auto from = reinterpret_cast<std::uintptr_t>(start);
  g_model.memory.watch(from, from + bytes);
}

void reset() {
  g_model.memory = {};
  g_model.writers.clear();
}

void settle() {
  g_model.memory.settle();
  g_model.writers.clear();
}

void write(unsigned thread, const std::function<void()>& body) {
  g_model.thread = &g_model.writers[thread];
  g_model.phase = Phase::writing;
  body();
  g_model.phase = Phase::off;
  g_model.memory.finish_store();
}

std::uint64_t read(const std::function<void()>& body) {
  std::uint64_t runs = 0;
  do {
    Thread reader;
    g_model.thread = &reader;
    g_model.next_choice = 0;
    g_model.phase = Phase::reading;
    body();
    g_model.phase = Phase::off;
    ++runs;
  } while (next_choices());
  g_model.memory.place(g_model.memory.stores());
  return runs;
}

std::uint64_t read_after_each_store(const std::function<void()>& body) {
  const std::uint64_t stores = g_model.memory.stores();
  for (std::uint64_t number = 0; number <= stores; ++number) {
    g_model.memory.place(number);
    g_model.phase = Phase::reading_after_death;
    body();
    g_model.phase = Phase::off;
  }
  return stores + 1;
}

}  // namespace oomrec::weak_memory

namespace model = oomrec::weak_memory;
using model::Order;

// NOLINTBEGIN(bugprone-macro-parentheses): types and parts of names
extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_read(void** at) { model::load(at, sizeof *at, Order::relaxed); }
void __tsan_vptr_update(void** at, void*) { model::store(at, sizeof *at, Order::relaxed); }
void __tsan_read_range(void* at, std::size_t bytes) { model::load(at, bytes, Order::relaxed); }
void __tsan_write_range(void* at, std::size_t bytes) { model::store(at, bytes, Order::relaxed); }

#define OOMREC_ACCESS(prefix, bytes)                                                      \
  void __tsan_##prefix##read##bytes(void* at) { model::load(at, bytes, Order::relaxed); } \
  void __tsan_##prefix##write##bytes(void* at) { model::store(at, bytes, Order::relaxed); }
#define OOMREC_ACCESSES(prefix) \
  OOMREC_ACCESS(prefix, 2)      \
  OOMREC_ACCESS(prefix, 4) OOMREC_ACCESS(prefix, 8) OOMREC_ACCESS(prefix, 16)
OOMREC_ACCESS(, 1)
OOMREC_ACCESS(volatile_, 1)
OOMREC_ACCESSES()
OOMREC_ACCESSES(volatile_)
OOMREC_ACCESSES(unaligned_)

#define OOMREC_CHANGE(bits, name, result)                                               \
  std::uint##bits##_t __tsan_atomic##bits##_##name(volatile std::uint##bits##_t* at,    \
                                                   std::uint##bits##_t by, int order) { \
    using T = std::uint##bits##_t;                                                      \
    return model::exchange(at, order, [by](T old) { return static_cast<T>(result); });  \
  }
#define OOMREC_ATOMIC(bits)                                                                     \
  std::uint##bits##_t __tsan_atomic##bits##_load(const volatile std::uint##bits##_t* at,        \
                                                 int order) {                                   \
    model::load(const_cast<const std::uint##bits##_t*>(at), bits / 8, model::order_of(order));  \
    return *at;                                                                                 \
  }                                                                                             \
  void __tsan_atomic##bits##_store(volatile std::uint##bits##_t* at, std::uint##bits##_t value, \
                                   int order) {                                                 \
    model::store(const_cast<const std::uint##bits##_t*>(at), bits / 8, model::order_of(order)); \
    *at = value;                                                                                \
  }                                                                                             \
  OOMREC_CHANGE(bits, exchange, (static_cast<void>(old), by))                                   \
  OOMREC_CHANGE(bits, fetch_add, old + by)                                                      \
  OOMREC_CHANGE(bits, fetch_sub, old - by)                                                      \
  OOMREC_CHANGE(bits, fetch_and, old& by)                                                       \
  OOMREC_CHANGE(bits, fetch_or, old | by)                                                       \
  OOMREC_CHANGE(bits, fetch_xor, old ^ by)                                                      \
  int __tsan_atomic##bits##_compare_exchange_strong(                                            \
      volatile std::uint##bits##_t* at, std::uint##bits##_t* expected,                          \
      std::uint##bits##_t desired, int order, int failure) {                                    \
    return model::compare_exchange(at, expected, desired, order, failure);                      \
  }                                                                                             \
  int __tsan_atomic##bits##_compare_exchange_weak(                                              \
      volatile std::uint##bits##_t* at, std::uint##bits##_t* expected,                          \
      std::uint##bits##_t desired, int order, int failure) {                                    \
    return model::compare_exchange(at, expected, desired, order, failure);                      \
  }
OOMREC_ATOMIC(8)
OOMREC_ATOMIC(16)
OOMREC_ATOMIC(32)
OOMREC_ATOMIC(64)

void __tsan_atomic_thread_fence(int order) { model::fence(model::order_of(order)); }
void __tsan_atomic_signal_fence(int) {}

// Clang calls these instead of the C library's; of gcc's code, the linker redirects the calls
// (--wrap).
void* __real_memmove(void*, const void*, std::size_t);
void* __real_memset(void*, int, std::size_t);
void* __tsan_memcpy(void* to, const void* from, std::size_t bytes) {
  model::load(from, bytes, Order::relaxed);
  model::store(to, bytes, Order::relaxed);
  return __real_memmove(to, from, bytes);
}
void* __tsan_memmove(void* to, const void* from, std::size_t bytes) {
  return __tsan_memcpy(to, from, bytes);
}
void* __tsan_memset(void* to, int value, std::size_t bytes) {
  model::store(to, bytes, Order::relaxed);
  return __real_memset(to, value, bytes);
}
void* __wrap_memcpy(void* to, const void* from, std::size_t bytes) {
  return __tsan_memcpy(to, from, bytes);
}
void* __wrap_memmove(void* to, const void* from, std::size_t bytes) {
  return __tsan_memcpy(to, from, bytes);
}
void* __wrap_memset(void* to, int value, std::size_t bytes) {
  return __tsan_memset(to, value, bytes);
}
}
// NOLINTEND(bugprone-macro-parentheses)
