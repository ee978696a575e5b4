// Turns a front end's table into exported functions. A row is
//   X(exported name, since, needs, (parameters), expression)
// since: the API version of this form; needs: none, init or context; the expression is the result.
#pragma once

#include <cstddef>
#include <cstring>

#include "tests/fake_gpu/core/entry.h"
#include "tests/fake_gpu/core/raw_memory.h"
#include "tests/fake_gpu/core/result.h"

namespace fake_gpu {

inline constexpr Needs none = Needs::nothing;
inline constexpr Needs init = Needs::start;
inline constexpr Needs context = Needs::context;

// Addresses and handles have one type in the core, whatever the front end's types are.
template <class T>
Address* address_out(T** out) {
  return reinterpret_cast<Address*>(out);
}
inline Address* address_out(Address* out) { return out; }
inline Address address_of(const void* pointer) { return reinterpret_cast<Address>(pointer); }
inline Address address_of(Address address) { return address; }
inline void* pointer_of(Address address) { return reinterpret_cast<void*>(address); }

template <class T>
void** handle_out(T** out) {
  return reinterpret_cast<void**>(out);
}

template <class To, class From>
int copy(To to, From from, std::size_t bytes) {
  std::memmove(pointer_of(address_of(to)), pointer_of(address_of(from)), bytes);
  return success;
}

template <class To, class Value>
int fill(To to, Value value, std::size_t count) {
  auto* const begin = static_cast<Value*>(pointer_of(address_of(to)));
  for (std::size_t i = 0; i < count; ++i) begin[i] = value;
  return success;
}

// Writes the function's result; an error if `out` is null.
template <class T, class Value>
int put(T* out, Value value) {
  if (out == nullptr) return invalid_value;
  *out = static_cast<T>(value);
  return success;
}

// A handle of an object without state here: a module, a function.
inline int put_token(void** out) {
  static char token;
  return put(out, &token);
}

}  // namespace fake_gpu

// Each expands its arguments first: a row of both_rows.h has DRIVER(name) for a name.
#define FAKE_GPU_ROW_NUMBER(...) FAKE_GPU_ROW_NUMBER_OF(__VA_ARGS__)
#define FAKE_GPU_DECLARE(...) FAKE_GPU_DECLARE_OF(__VA_ARGS__)
#define FAKE_GPU_FUNCTION(...) FAKE_GPU_FUNCTION_OF(__VA_ARGS__)
#define FAKE_GPU_DEFINE(...) FAKE_GPU_DEFINE_OF(__VA_ARGS__)

#define FAKE_GPU_ROW_NUMBER_OF(name, ...) row_##name,
#define FAKE_GPU_DECLARE_OF(name, since, needs, parameters, ...) \
  [[gnu::visibility("hidden")]] int real_##name parameters;
#define FAKE_GPU_FUNCTION_OF(name, since, ...) \
  {#name, since, reinterpret_cast<void*>(real_##name), {0}},

// A hidden function does the work, and the exported name is its alias: a lookup gives the fake's
// own address even if a recorder interposes the name.
#define FAKE_GPU_DEFINE_OF(name, since, needs, parameters, ...)                                \
  [[gnu::visibility("hidden")]] int real_##name parameters {                                   \
    const Entry entry(g_functions[row_##name], needs);                                         \
    return note(entry.failure() != success ? entry.failure() : static_cast<int>(__VA_ARGS__)); \
  }                                                                                            \
  __attribute__((alias("real_" #name), visibility("default"))) int name parameters;

#define FAKE_GPU_FRONT_END(ROWS)                             \
  extern "C" {                                               \
  ROWS(FAKE_GPU_DECLARE)                                     \
  }                                                          \
  enum { ROWS(FAKE_GPU_ROW_NUMBER) row_count };              \
  static Function g_functions[] = {ROWS(FAKE_GPU_FUNCTION)}; \
  const Functions exported = {g_functions, row_count};       \
  extern "C" {                                               \
  ROWS(FAKE_GPU_DEFINE)                                      \
  }
