// A library to preload instead of the recorder into any program. At every n-th allocation it
// compares our stack walk with libunwind's. STACKS_EVERY is n. At the end of each process it
// appends the counts to the file STACKS_COUNTED.
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "recorder/stack/stack.h"
#include "tests/unit/recorder/stack/oracle.h"

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
}

namespace {

using namespace oomrec;

unsigned long every = 0;  // 0: not started, or ended
std::atomic<unsigned long> allocations{0};
[[gnu::tls_model("initial-exec")]] thread_local bool comparing = false;

void maybe_compare() {
  if (every == 0 || comparing) return;
  comparing = true;  // do not compare the comparison's own allocations
  if (allocations.fetch_add(1, std::memory_order_relaxed) % every == 0) stack::compare_here();
  comparing = false;
}

[[gnu::constructor]] void begin() {
  if (const char* const text = std::getenv("STACKS_EVERY")) {
    stack::start();
    every = std::strtoul(text, nullptr, 10);
  }
}

[[gnu::destructor]] void end() {
  every = 0;
  const char* const path = std::getenv("STACKS_COUNTED");
  if (path == nullptr) return;
  const stack::OracleCount& counted = stack::g_oracle;
  char line[200];
  const int bytes = std::snprintf(line, sizeof line, "%lu %lu %lu %lu %lu %s\n", counted.stacks,
                                  counted.different, counted.given_up, counted.frames,
                                  counted.deepest, program_invocation_short_name);
  const int descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (descriptor < 0) return;
  [[maybe_unused]] const ssize_t written = write(descriptor, line, static_cast<std::size_t>(bytes));
  close(descriptor);
}

}  // namespace

#define PRELOADED extern "C" __attribute__((visibility("default")))

PRELOADED void* malloc(std::size_t n) {
  maybe_compare();
  return __libc_malloc(n);
}
PRELOADED void* calloc(std::size_t k, std::size_t n) {
  maybe_compare();
  return __libc_calloc(k, n);
}
PRELOADED void* realloc(void* block, std::size_t n) {
  maybe_compare();
  return __libc_realloc(block, n);
}
PRELOADED int dlclose(void* library) {
  static const auto next = reinterpret_cast<int (*)(void*)>(dlsym(RTLD_NEXT, "dlclose"));
  const int result = next(library);
  stack::on_modules_unloaded(OutsideHooks::in_hook());
  return result;
}
