#include "shim/interpose/entries.h"

#include <dlfcn.h>

#include <cstddef>
#include <iterator>

#include "shim/interpose/loader.h"
#include "shim/interpose/next_functions.h"

// Only the hooks' addresses matter here. They must be constants, which a function's address as a
// void* is not.
extern "C" {
#define X(name) [[gnu::visibility("hidden")]] extern const char hook_##name[];
OOMREC_OTHER_ENTERED_FUNCTIONS(X)
#define Y(result, name, parameters, arguments) X(name)
OOMREC_ENTERED_FUNCTIONS(Y)
#undef Y
#undef X

// In the order of entries.S.
#define X(name) hook_##name,
#define Y(result, name, parameters, arguments) X(name)
[[gnu::visibility("hidden")]] constinit const void* oomrec_entries[] = {
    OOMREC_ENTERED_FUNCTIONS(Y) OOMREC_OTHER_ENTERED_FUNCTIONS(X)};
#undef Y
#undef X
}

namespace oomrec::shim {

// A function that no library has keeps its hook, which fails as the missing function would.
void bypass_hooks() noexcept {
#define X(name) #name,
#define Y(result, name, parameters, arguments) X(name)
  static constexpr const char* kNames[] = {OOMREC_ENTERED_FUNCTIONS(Y)
                                               OOMREC_OTHER_ENTERED_FUNCTIONS(X)};
#undef Y
#undef X
  for (std::size_t i = 0; i < std::size(kNames); ++i)
    if (const void* const next = real_dlsym()(RTLD_NEXT, kNames[i])) oomrec_entries[i] = next;
}

}  // namespace oomrec::shim
