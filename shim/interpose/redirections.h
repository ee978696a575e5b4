// Redirects the calls of loaded modules to our hooks, where symbol interposition comes too late.
//
// A module calls a function of another one through a word that the loader has filled in
// (x86-64: R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT), or keeps its address in its data. Each
// such word that holds the address of a function that we hook gets the hook's; a word that the
// loader has not bound yet is recognized by its symbol's name. Words are stored whole, so other
// threads call the one or the other. Nothing is remembered: to revert it, each word with a hook's
// address gets the real function's.
//
// In a program that started with this library the loader binds the calls of its modules to us, but
// not those of a library that it opens with RTLD_DEEPBIND: to it the C library comes first.
//
// Enters the loader, so never inside a hook of another function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace oomrec::shim {

enum class Direction : bool { to_hooks, to_next };

struct RedirectionCounts {
  std::uint32_t modules = 0;
  std::uint32_t words = 0;
  std::uint32_t modules_being_loaded = 0;  // left alone: the loader still relocates them
};

// Finds hooks and real functions.
void prepare_redirections() noexcept;

// Redirects, once, the modules that are loaded now, to the functions that `add` adds.
void redirect_once(void (*add)() noexcept) noexcept;

// One more function: one that this library exports, and any other.
void add_exported_redirection(const char* name, const void* next) noexcept;
void add_redirection(const char* name, const void* next, const void* hook) noexcept;

// The same, but for calls from the library that is mapped at `outside`. `exported`: the name of the
// function of ours that does it.
void add_exported_redirection(const char* name, const void* next, const char* exported,
                              const void* outside) noexcept;
void add_redirection(const char* name, const void* next, const void* hook,
                     const void* outside) noexcept;

// Functions of libraries that may come later. `loaded` says which are loaded now, as a number that
// changes when one comes or goes; `add` then adds their functions.
struct LaterLibraries {
  std::uint64_t (*loaded)() noexcept;
  void (*add)() noexcept;
};
void add_later_redirections(const LaterLibraries& libraries) noexcept;

RedirectionCounts redirect_modules(Direction) noexcept;

// Whether the calls of all modules are redirected, also of those that are loaded later.
bool is_redirecting() noexcept;

// How many modules the loader has loaded since the program's start.
unsigned long long loads_so_far() noexcept;

// Redirects the modules that were loaded since `loads_before`: by dlopen with RTLD_DEEPBIND, which
// has returned `library`. A word that the loader has not bound yet gets a hook only if it would be
// bound to the function that the hook calls, so that the library keeps its allocator. nullptr: that
// is not known, and such words stay as they are; so do those of new modules that are not its own.
void redirect_deep_bound(void* library, unsigned long long loads_before) noexcept;

// The same for words in the program's data: each is changed only if it has one of the addresses.
void redirect_words(std::span<const std::uint64_t> addresses, Direction) noexcept;

// The same, while calls are redirected, if modules were loaded since the last time: two loads if
// not.
void redirect_new_modules() noexcept;

}  // namespace oomrec::shim
