#pragma once

#include <atomic>
#include <cstdint>

namespace oomrec::machine {

// Enters the kernel. Its result, or -errno.
inline long system_call(long number, const long (&words)[6]) noexcept {
  // Read first: a sanitizer calls a function at each read, which would lose the named registers.
  const long first = words[0], second = words[1], third = words[2];
  const long fourth = words[3], fifth = words[4], sixth = words[5];
  register long x8 asm("x8") = number;
  register long result asm("x0") = first;
  register long x1 asm("x1") = second;
  register long x2 asm("x2") = third;
  register long x3 asm("x3") = fourth;
  register long x4 asm("x4") = fifth;
  register long x5 asm("x5") = sixth;
  asm volatile("svc #0"
               : "+r"(result)
               : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
               : "memory");
  return result;
}

// Between two looks at a word that another thread is about to change.
inline void spin_pause() noexcept { asm volatile("yield"); }

// Adds to a word that only this thread writes. A signal handler of this thread that adds to the
// same word in between loses nothing: an interrupt clears the exclusive monitor, and the store is
// tried again.
template <class T>
inline void add_own(std::atomic<T>& word, T delta) noexcept {
  static_assert(sizeof(T) == 8 || sizeof(T) == 4);
  T sum;
  unsigned failed;
  if constexpr (sizeof(T) == 8) {
    asm volatile(
        "1:\n\t"
        "ldxr %0, %2\n\t"
        "add %0, %0, %3\n\t"
        "stxr %w1, %0, %2\n\t"
        "cbnz %w1, 1b"
        : "=&r"(sum), "=&r"(failed), "+Q"(word)
        : "r"(delta));
  } else {
    asm volatile(
        "1:\n\t"
        "ldxr %w0, %2\n\t"
        "add %w0, %w0, %w3\n\t"
        "stxr %w1, %w0, %2\n\t"
        "cbnz %w1, 1b"
        : "=&r"(sum), "=&r"(failed), "+Q"(word)
        : "r"(delta));
  }
}

// A plain load that no sanitizer takes for an access to a variable.
[[gnu::always_inline]] inline std::uint64_t load_word(std::uint64_t address) noexcept {
  using Word [[gnu::may_alias]] = std::uint64_t;
  std::uint64_t value;
  asm volatile("ldr %0, %1" : "=r"(value) : "m"(*reinterpret_cast<const Word*>(address)));
  return value;
}

// The C library's control block of this thread.
inline std::uint64_t thread_pointer() noexcept {
  std::uint64_t pointer;
  asm("mrs %0, tpidr_el0" : "=r"(pointer));
  return pointer;
}

// False in a clone child that got an empty block for its thread-local storage: a control block
// begins with the address of the thread's table of modules (glibc's tcbhead_t).
inline bool has_thread_storage() noexcept {
  std::uint64_t pointer;
  asm volatile("mrs %0, tpidr_el0" : "=r"(pointer));
  return pointer != 0 && load_word(pointer) != 0;
}

}  // namespace oomrec::machine
