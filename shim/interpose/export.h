// A symbol that the process sees: everything else of the library is hidden.
#pragma once

#define OOMREC_EXPORT __attribute__((visibility("default"), used))

// Defines the hook of `symbol` under a C++ name of our own, hook_SYMBOL: the headers' declarations
// (their attributes, exception specifications and variable arguments) and the compiler's knowledge
// of the function stay out of its body.
#define OOMREC_HOOK(result, symbol, parameters)                          \
  extern "C" OOMREC_EXPORT result hook_##symbol parameters asm(#symbol); \
  extern "C" result hook_##symbol parameters
