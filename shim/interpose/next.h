// The next definitions: what the program would have called without this library.
//
// The first call of any of them looks up all (in our constructor, or earlier). From then on a call
// is one indirect jump, and no hook enters the loader. During the lookup the loader itself
// allocates: such blocks come from a small static arena, are never reused, and free() ignores them.
#pragma once

#include <pthread.h>
#include <signal.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "shim/interpose/next_functions.h"

namespace oomrec::shim {

struct Next {
#define X(result, name, parameters, arguments) result(*name) parameters;
  OOMREC_NEXT_FUNCTIONS(X)
#undef X
};

extern constinit Next g_next;

// Looks up what every C library has; for the constructor. Further calls do nothing.
void resolve_next() noexcept;

// Looks up the rest, which fails before; for the constructor.
void resolve_missing_next() noexcept;

// Looks everything up once more, among the definitions that the program's modules use: for a
// library that came by dlopen, after which there are no others.
void resolve_next_in_program() noexcept;

// The next definition of a function; nullptr: none. Enters the loader.
void* next_definition(const char* name) noexcept;

// Whether no library has this function, so that it is our stand-in (ENOSYS).
bool is_absent(const void* function) noexcept;

inline constexpr std::size_t kBootstrapBytes = 32 * 1024;
extern constinit std::byte g_bootstrap[kBootstrapBytes];
inline bool is_bootstrap_block(const void* block) noexcept {
  return static_cast<std::size_t>(static_cast<const std::byte*>(block) - g_bootstrap) <
         kBootstrapBytes;
}

// What jemalloc's functions are where there is none (heap.cpp).
void* mallocx_by_memalign(std::size_t n, int flags);
void* rallocx_by_realloc(void* block, std::size_t n, int flags);

}  // namespace oomrec::shim

extern "C" __attribute__((visibility("hidden"))) long (*oomrec_next_syscall)(long, long, long, long,
                                                                             long, long, long);

// Our free (heap.cpp), by the name under which we export it.
extern "C" void hook_free(void* block) asm("free");
