// Exports a symbol to the process; all others of the library are hidden.
#pragma once

#define OOMREC_EXPORT __attribute__((visibility("default"), used))

// Defines the hook of `symbol` under our own C++ name, hook_SYMBOL. So the header's declaration
// (attributes, exception specification, variable arguments) and the compiler's built-in knowledge
// of the function do not affect its body. The program enters it through a table (entries.h).
#define OOMREC_HOOK(result, symbol, parameters)                                     \
  extern "C" __attribute__((visibility("hidden"))) result hook_##symbol parameters; \
  extern "C" result hook_##symbol parameters

// The same for a hook that the program calls directly.
#define OOMREC_DIRECT_HOOK(result, symbol, parameters)                   \
  extern "C" OOMREC_EXPORT result hook_##symbol parameters asm(#symbol); \
  extern "C" result hook_##symbol parameters
