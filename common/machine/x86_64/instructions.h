#pragma once

#include <atomic>
#include <cstdint>

namespace oomrec::machine {

// Enters the kernel. Its result, or -errno.
inline long system_call(long number, const long (&words)[6]) noexcept {
  // Read first: a sanitizer calls a function at each read, which would lose the named registers.
  const long first = words[0], second = words[1], third = words[2];
  const long fourth = words[3], fifth = words[4], sixth = words[5];
  long result = number;
  register long r10 asm("r10") = fourth;
  register long r8 asm("r8") = fifth;
  register long r9 asm("r9") = sixth;
  asm volatile("syscall"
               : "+a"(result)
               : "D"(first), "S"(second), "d"(third), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}

// Between two looks at a word that another thread is about to change.
inline void spin_pause() noexcept { __builtin_ia32_pause(); }

// Adds to a word that only this thread writes: one instruction without a lock prefix, so that a
// signal handler of this thread that adds to the same word in between loses nothing.
template <class T>
inline void add_own(std::atomic<T>& word, T delta) noexcept {
  static_assert(sizeof(T) == 8 || sizeof(T) == 4);
  if constexpr (sizeof(T) == 8) {
    asm volatile("addq %1, %0" : "+m"(word) : "er"(delta) : "cc");
  } else {
    asm volatile("addl %1, %0" : "+m"(word) : "ir"(delta) : "cc");
  }
}

// A plain load that no sanitizer takes for an access to a variable.
[[gnu::always_inline]] inline std::uint64_t load_word(std::uint64_t address) noexcept {
  using Word [[gnu::may_alias]] = std::uint64_t;
  std::uint64_t value;
  asm volatile("movq %1, %0" : "=r"(value) : "m"(*reinterpret_cast<const Word*>(address)));
  return value;
}

// The C library's control block of this thread.
inline std::uint64_t thread_pointer() noexcept {
  std::uint64_t pointer;
  asm("movq %%fs:0, %0" : "=r"(pointer));
  return pointer;
}

// False in a clone child that got an empty block for its thread-local storage: a control block
// begins with its own address (x86-64 psABI, thread-local storage).
inline bool has_thread_storage() noexcept {
  const void* block;
  asm volatile("movq %%fs:0, %0" : "=r"(block));
  return block != nullptr;
}

}  // namespace oomrec::machine
