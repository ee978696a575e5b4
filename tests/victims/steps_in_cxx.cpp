// The steps in C++: new, with its exception caught or not.
#include "steps.h"

#include <new>

static void hold(size_t mib) {
  constexpr size_t kPiece = 1 << 20;
  for (size_t i = 0; i < mib; ++i) memset(new char[kPiece], 1, kPiece);
}

static volatile char* ask(size_t bytes) {
  try {
    return new char[bytes];
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

static void demand(size_t bytes) { given = new char[bytes]; }
