// Redirects the calls of loaded modules to our hooks, where symbol interposition comes too late.
//
// A module calls a function of another one through a word that the loader has filled in
// (x86-64: R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT), or keeps its address in its data. Each
// such word that holds the address of a function that we hook gets the hook's; a word that the
// loader has not bound yet is recognized by its symbol's name. Words are stored whole, so other
// threads call the one or the other. Nothing is remembered: to revert it, each word with a hook's
// address gets the real function's.
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

// Finds hooks and real functions. `own_start`: where this library's ELF header is mapped.
void prepare_redirections(std::uint64_t own_start) noexcept;

// One more function: one that this library exports, and any other.
void add_exported_redirection(const char* name, const void* next) noexcept;
void add_redirection(const char* name, const void* next, const void* hook) noexcept;

// Functions of libraries that may come later. `loaded` says which are loaded now, as a number that
// changes when one comes or goes; `add` then adds their functions.
struct LaterLibraries {
  std::uint64_t (*loaded)() noexcept;
  void (*add)() noexcept;
};
void add_later_redirections(const LaterLibraries& libraries) noexcept;

RedirectionCounts redirect_modules(Direction) noexcept;

// The same for words in the program's data: each is changed only if it has one of the addresses.
void redirect_words(std::span<const std::uint64_t> addresses, Direction) noexcept;

// The same, while calls are redirected, if modules were loaded since the last time: two loads if
// not.
void redirect_new_modules() noexcept;

}  // namespace oomrec::shim
