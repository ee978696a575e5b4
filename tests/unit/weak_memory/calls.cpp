// The functions that code compiled with -fsanitize=thread calls at each access to memory
// (compiler-rt/lib/tsan/rtl/tsan_interface.h, tsan_interface_atomic.cpp), and what they mean here.
// Compiled without that option. Some are only gcc's, others only clang's.
#include <cstddef>
#include <cstdint>

#include "tests/unit/weak_memory/accesses.h"

namespace oomrec::weak_memory {

namespace {

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
    case __ATOMIC_ACQ_REL:
      return Order::both;
    default:
      return Order::sequential;
  }
}

// `change` returns the new value.
template <class T, class Change>
T exchange(volatile T* at, int order, Change change) {
  const void* const address = const_cast<const T*>(at);
  load_to_change(address, sizeof(T), order_of(order));
  const T old = *at;
  const View released = released_by_newest(address, sizeof(T));
  store(address, sizeof(T), order_of(order), &released);
  *at = change(old);
  return old;
}

template <class T>
bool compare_exchange(volatile T* at, T* expected, T desired, int order, int failure) {
  if (!finds(const_cast<const T*>(at), sizeof(T), expected, order_of(failure))) {
    *expected = *at;
    return false;
  }
  exchange(at, order, [&](T) { return desired; });
  return true;
}

}  // namespace

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
#define OOMREC_COMPARE(bits, name)                                         \
  int __tsan_atomic##bits##_compare_exchange_##name(                       \
      volatile std::uint##bits##_t* at, std::uint##bits##_t* expected,     \
      std::uint##bits##_t desired, int order, int failure) {               \
    return model::compare_exchange(at, expected, desired, order, failure); \
  }
#define OOMREC_ATOMIC(bits)                                                                        \
  std::uint##bits##_t __tsan_atomic##bits##_load(const volatile std::uint##bits##_t* at,           \
                                                 int order) {                                      \
    model::load(const_cast<const std::uint##bits##_t*>(at), bits / 8, model::order_of(order));     \
    return *at;                                                                                    \
  }                                                                                                \
  void __tsan_atomic##bits##_store(volatile std::uint##bits##_t* at, std::uint##bits##_t value,    \
                                   int order) {                                                    \
    model::store(const_cast<const std::uint##bits##_t*>(at), bits / 8, model::order_of(order));    \
    *at = value;                                                                                   \
  }                                                                                                \
  OOMREC_CHANGE(bits, exchange, (static_cast<void>(old), by))                                      \
  OOMREC_CHANGE(bits, fetch_add, old + by)                                                         \
  OOMREC_CHANGE(bits, fetch_sub, old - by)                                                         \
  OOMREC_CHANGE(bits, fetch_and, old& by)                                                          \
  OOMREC_CHANGE(bits, fetch_or, old | by)                                                          \
  OOMREC_CHANGE(bits, fetch_xor, old ^ by)                                                         \
  OOMREC_COMPARE(bits, strong)                                                                     \
  OOMREC_COMPARE(bits, weak)                                                                       \
  std::uint##bits##_t __tsan_atomic##bits##_compare_exchange_val(                                  \
      volatile std::uint##bits##_t* at, std::uint##bits##_t expected, std::uint##bits##_t desired, \
      int order, int failure) {                                                                    \
    model::compare_exchange(at, &expected, desired, order, failure);                               \
    return expected;                                                                               \
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
