// Exports a symbol to the process; all others of the library are hidden.
#pragma once

#define OOMREC_EXPORT __attribute__((visibility("default"), used))

// Defines the hook of `symbol` under our own C++ name, hook_SYMBOL. So the header's declaration
// (attributes, exception specification, variable arguments) and the compiler's built-in knowledge
// of the function do not affect its body.
#define OOMREC_HOOK(result, symbol, parameters)                          \
  extern "C" OOMREC_EXPORT result hook_##symbol parameters asm(#symbol); \
  extern "C" result hook_##symbol parameters
