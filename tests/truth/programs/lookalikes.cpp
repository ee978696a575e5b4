// A cache is refused and done without; then a bug that looks like a refusal, but is none. Or a
// refusal that is used (used_…). lookalikes HOW.
#include <pthread.h>
#include <sys/mman.h>

#include <any>
#include <future>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "truth.h"

#define NOINLINE __attribute__((noinline))

static volatile size_t too_much = (size_t)1 << 46;
static volatile long sink;
static void* volatile kept[400];

struct Row {
  volatile long key;
  char name[24];
};
struct Image {
  char* pixels = new char[too_much];
};

NOINLINE static void try_cache() {
  char* cache = (char*)malloc(too_much);
  if (cache) sink = cache[0];
}
NOINLINE static Row* find_row(long key) { return key == sink + 1 ? (Row*)malloc(64) : nullptr; }
NOINLINE static void fill_rows() {
  for (int i = 0; i < 400; ++i) kept[i] = malloc(24);
}
NOINLINE static long overflow(int depth) {
  volatile char frame[4096];
  frame[0] = (char)depth;
  return overflow(depth + 1) + frame[0];
}
static void* overflows(void*) { return (void*)overflow(0); }

// --- Bugs that are no refusal ----------------------------------------------------------------

NOINLINE static void missing_file() { fputs("line", fopen("/nowhere/file", "w")); }
NOINLINE static void missing_path() { realpath("/nowhere/file", nullptr)[0] = 'x'; }
NOINLINE static void missing_variable() { sink = (long)strlen(getenv("NOT_SET_ANYWHERE")); }
NOINLINE static void before_missing() { find_row(7)[-1].key = 1; }
NOINLINE static void zero_setting() { sink = 100 / atoi("0"); }
NOINLINE static void cannot_open() { throw std::runtime_error("cannot open settings.toml"); }
NOINLINE static void bad_thread() { std::thread().join(); }
NOINLINE static void bad_cast() { sink = std::any_cast<long>(std::any(std::string("text"))); }
NOINLINE static void no_value() { sink = std::optional<long>().value(); }
NOINLINE static void too_long() { std::vector<long>().reserve((size_t)-1); }
NOINLINE static void thread_overflows() {
  pthread_t thread;
  pthread_create(&thread, nullptr, overflows, nullptr);
  pthread_join(thread, nullptr);
}
NOINLINE static void rows_then_abort() {
  fill_rows();
  if (!find_row(7)) abort();
}
NOINLINE static void overrun() {
  char* name = strdup("sixteen letters.");
  memset(name, 'x', 64);
  fill_rows();
  free(name);
}

// --- Refusals that are used ------------------------------------------------------------------

NOINLINE static void used_before() { ((Row*)calloc(too_much, 1))[-1].key = 1; }
NOINLINE static void used_memcpy() { memcpy(malloc(too_much), "a header of some bytes", 22); }
NOINLINE static void used_aligned() { *(volatile long*)aligned_alloc(64, too_much) = 1; }
NOINLINE static void used_memalign() {
  void* block = nullptr;
  if (posix_memalign(&block, 64, too_much) != 0) fprintf(stderr, "no block\n");
  *(volatile long*)block = 1;
}
NOINLINE static void used_map() {
  void* map =
      mmap(nullptr, too_much << 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ((Row*)map)[3].key = 1;
}
NOINLINE static void used_string() { sink = (long)std::string(too_much, 'x').size(); }
NOINLINE static void used_constructor() { sink = (long)Image().pixels[0]; }
NOINLINE static void used_async() {
  sink = std::async(std::launch::async, [] { return std::vector<char>(too_much).size(); }).get();
}
NOINLINE static void used_thread() {
  std::thread([] { sink = (long)std::vector<char>(too_much).size(); }).join();
}
NOINLINE static void used_cleanup() {
  char* block = (char*)malloc(too_much);
  if (!block) {
    for (void* volatile& row : kept) free(row);
    fprintf(stderr, "out of memory\n");
    abort();
  }
  sink = block[0];
}

struct Bug {
  const char* name;
  void (*run)();
};
static const Bug kBugs[] = {
    {"missing_file", missing_file},
    {"missing_path", missing_path},
    {"missing_variable", missing_variable},
    {"before_missing", before_missing},
    {"zero_setting", zero_setting},
    {"cannot_open", cannot_open},
    {"bad_thread", bad_thread},
    {"bad_cast", bad_cast},
    {"no_value", no_value},
    {"too_long", too_long},
    {"thread_overflows", thread_overflows},
    {"rows_then_abort", rows_then_abort},
    {"overrun", overrun},
    {"used_before", used_before},
    {"used_memcpy", used_memcpy},
    {"used_aligned", used_aligned},
    {"used_memalign", used_memalign},
    {"used_map", used_map},
    {"used_string", used_string},
    {"used_constructor", used_constructor},
    {"used_async", used_async},
    {"used_thread", used_thread},
    {"used_cleanup", used_cleanup},
};

int main(int, char** argv) {
  char* held = hold(24);
  const bool is_used = strncmp(argv[1], "used_", 5) == 0;
  if (!is_used) try_cache();
  fill_rows();
  nap_ms(50);
  for (const Bug& bug : kBugs)
    if (strcmp(bug.name, argv[1]) == 0) bug.run();
  return held[5];
}
