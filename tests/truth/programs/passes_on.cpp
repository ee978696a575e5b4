// A function is refused memory, notices, and reports that as its own failure. Its caller breaks
// because of it, or deals with it and breaks later for another reason (handled_…). passes_on HOW.
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/mman.h>

#include <exception>
#include <future>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "truth.h"

#define NOINLINE __attribute__((noinline))
#define ENDS_BY_JUMP __attribute__((noinline, optimize("optimize-sibling-calls")))

static size_t too_much = (size_t)1 << 46;
static volatile long sink;
static void* volatile kept[4000];

struct Header {
  long size, kind;
};
struct Table {
  unsigned slots;
  long* cells;
};
struct Node {
  long key;
  Node* next;
};
struct PoolIsEmpty : std::bad_alloc {};

// --- What goes on afterwards
// -----------------------------------------------------------------------

NOINLINE static void work() {
  for (int i = 0; i < 4000; ++i) {
    free(kept[i]);
    kept[i] = malloc(200 + (size_t)i % 50);
  }
}
NOINLINE static Node* lookup(long key) { return key == sink + 1 ? (Node*)malloc(64) : nullptr; }
NOINLINE static void use_null() { sink = lookup(77)->next->key; }
NOINLINE static void goes_on_then_uses_null() {
  for (int i = 0; i < 3; ++i) work();
  nap_ms(50);
  use_null();
}

// --- A loop in the error branch
// ----------------------------------------------------------------------

NOINLINE static void loop_abort() {
  char* block = (char*)malloc(too_much);
  if (!block) {
    for (int i = 0; i < 400; ++i) kept[i] = malloc(24);
    fprintf(stderr, "out of memory: %d rows saved\n", 400);
    abort();
  }
  sink = block[0];
}
NOINLINE static void loop_trap() {
  char* block = (char*)malloc(too_much);
  if (!block) {
    for (int i = 0; i < 400; ++i)
      if (i % 3 == 0) kept[i] = malloc(24);
    __builtin_trap();
  }
  sink = block[0];
}
NOINLINE static void loop_null() {
  Table* table = (Table*)malloc(too_much);
  if (!table) {
    for (int i = 0; i < 400; ++i) kept[i] = malloc(24);
    table->slots = 400;
  }
  sink = table->slots;
}
NOINLINE static void handled_loop_abort() {
  char* block = (char*)malloc(too_much);
  if (!block)
    for (int i = 0; i < 400; ++i) kept[i] = malloc(24);
  for (int i = 0; i < 3; ++i) work();
  if (sink == 0) abort();
  free(block);
}
NOINLINE static void handled_loop_null() {
  char* block = (char*)malloc(too_much);
  if (!block)
    for (int i = 0; i < 400; ++i) kept[i] = malloc(24);
  goes_on_then_uses_null();
  free(block);
}

// --- Functions that return their failure
// -------------------------------------------------------------

static const char* long_text() {
  static std::string text(40 << 20, 't');
  return text.c_str();
}
NOINLINE static void strdup_used() {
  volatile char* copy = strdup(long_text());
  copy[0] = 'T';
}
NOINLINE static void handled_strdup() {
  const char* copy = strdup(long_text());
  if (!copy) copy = "";
  sink = copy[0];
  goes_on_then_uses_null();
}
NOINLINE static void asprintf_used() {
  char* line = nullptr;
  asprintf(&line, "%*d", 40 << 20, 1);
  line[0] = '#';
}
NOINLINE static void handled_asprintf() {
  char* line = nullptr;
  if (asprintf(&line, "%*d", 40 << 20, 1) < 0) line = nullptr;
  goes_on_then_uses_null();
  free(line);
}
NOINLINE static void fopen_fputs() {
  FILE* log = fopen("log.txt", "w");
  fputs("started\n", log);
}
NOINLINE static void handled_fopen() {
  FILE* log = fopen("log.txt", "w");
  if (log) fputs("started\n", log);
  goes_on_then_uses_null();
}
NOINLINE static void getline_used() {
  FILE* file = fopen("/etc/passwd", "r");
  char* line = nullptr;
  size_t room = 0;
  getline(&line, &room, file);
  line[0] = '#';
}
// What the stack held before: 0x61… is no address.
NOINLINE static void dirty_stack() {
  volatile char bytes[4096];
  for (size_t i = 0; i < sizeof bytes; ++i) bytes[i] = 'a';
}
NOINLINE static void print_long(char** line) { asprintf(line, "%*d", 40 << 20, 1); }
NOINLINE static void asprintf_unset() {
  char* line;
  asprintf(&line, "%*d", 40 << 20, 1);
  line[0] = '#';
}
NOINLINE static void asprintf_unset_freed() {
  char* line;
  asprintf(&line, "%*d", 40 << 20, 1);
  free(line);
}
NOINLINE static void asprintf_measured() {
  char* line;
  asprintf(&line, "%*d", 40 << 20, 1);
  sink = (long)strlen(line);
}
NOINLINE static void asprintf_freed_before() {
  char* line = strdup("a short line of text");
  sink = line[0];
  free(line);
  asprintf(&line, "%*d", 40 << 20, 1);
  free(line);
}
NOINLINE static char* formatted(const char* format, ...) {
  char* line;
  va_list values;
  va_start(values, format);
  vasprintf(&line, format, values);
  va_end(values);
  return line;
}
NOINLINE static void vasprintf_returned() { formatted("%*d", 40 << 20, 1)[0] = '#'; }
NOINLINE static void asprintf_elsewhere() {
  char* line = nullptr;
  print_long(&line);
  line[0] = '#';
}
NOINLINE static void getline_unset() {
  FILE* file = fopen("/etc/passwd", "r");
  char* line = nullptr;
  size_t room = 0;
  const ssize_t length = getline(&line, &room, file);
  line[length - 1] = 0;  // as if there were a line with its end
}
NOINLINE static void memalign_unset() {
  void* block;
  posix_memalign(&block, 64, too_much);
  *(volatile char*)block = 1;
}
// Nobody looks at the line that was not made.
NOINLINE static void handled_asprintf_unused() {
  char* line = nullptr;
  asprintf(&line, "%*d", 40 << 20, 1);
  goes_on_then_uses_null();
}
NOINLINE static void handled_asprintf_replaced() {
  char* line;
  if (asprintf(&line, "%*d", 40 << 20, 1) < 0) line = strdup("?");
  char* name = strdup("a name");
  sink = line[0] + name[0];
  free(line);
  free(name);
  work();
  free(name);
}
NOINLINE static void handled_getline() {
  FILE* file = fopen("/etc/passwd", "r");
  char* line = nullptr;
  size_t room = 0;
  while (getline(&line, &room, file) != -1) sink = line[0];
  free(line);
  goes_on_then_uses_null();
}
NOINLINE static void handled_memalign_unset() {
  void* block;
  if (posix_memalign(&block, 64, too_much) != 0) block = (void*)&sink;
  *(volatile char*)block = 1;
  char* volatile other = (char*)0x6161616161616161;
  other[0] = 1;
}
NOINLINE static void realpath_used() {
  char* path = realpath("/usr/bin/env", nullptr);
  path[0] = '!';
}
NOINLINE static Header* made_image() {
  char* bytes = new (std::nothrow) char[too_much];
  if (!bytes) return nullptr;
  memset(bytes, 0, sizeof(Header));
  return (Header*)bytes;
}
NOINLINE static void nothrow_wrapper() { made_image()->kind = 3; }
NOINLINE static void handled_nothrow_wrapper() {
  Header* image = made_image();
  if (image) image->kind = 3;
  goes_on_then_uses_null();
}
// A library's own allocator: its pages come from mmap.
NOINLINE static void* new_pages(size_t bytes) {
  void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return pages == MAP_FAILED ? nullptr : pages;
}
NOINLINE static void* new_arena(size_t bytes) {
  Header* arena = (Header*)new_pages(bytes + 4096);
  if (!arena) return nullptr;
  arena->size = (long)bytes;
  return arena + 1;
}
NOINLINE static void* pool_malloc(size_t bytes) {
  if (bytes < 4096) return malloc(bytes);
  void* block = new_arena(bytes);
  if (!block) fprintf(stderr, "pool: no arena\n");
  return block;
}
NOINLINE static void pool_used() { ((Table*)pool_malloc(too_much))->slots = 4; }
NOINLINE static void handled_pool() {
  Table* table = (Table*)pool_malloc(too_much);
  if (table) table->slots = 4;
  goes_on_then_uses_null();
}
static bool has_cache;
NOINLINE static bool try_cache() {
  char* cache = (char*)malloc(too_much);
  if (!cache) {
    fprintf(stderr, "no cache\n");
    return false;
  }
  sink = cache[0];
  return true;
}
NOINLINE static void handled_code_stored() {
  has_cache = try_cache();
  use_null();
}

// --- Addresses
// ---------------------------------------------------------------------------------------

NOINLINE static void header_before() {
  volatile Header* block = (volatile Header*)malloc(too_much);
  block[-1].size = 7;
}
NOINLINE static void handled_header_before() {
  try_cache();
  for (int i = 0; i < 3; ++i) work();
  ((volatile Header*)lookup(77))[-1].size = 7;
}
NOINLINE static void realloc_overrun() {
  char* rows = (char*)malloc(100000);
  memset(rows, 1, 100000);
  if (!realloc(rows, too_much)) fprintf(stderr, "cannot grow\n");
  for (size_t i = 100000; i < too_much; i += 512) ((volatile char*)rows)[i] = 2;
}
NOINLINE static void handled_realloc() {
  char* rows = (char*)malloc(100000);
  char* grown = (char*)realloc(rows, too_much);
  if (!grown) fprintf(stderr, "cannot grow\n");
  for (int i = 0; i < 3; ++i) work();
  *(volatile char*)((long)&sink + (64l << 30)) = 1;
}

NOINLINE static void start_server(bool cached) { sink = lookup(cached ? 78 : 77)->next->key; }
NOINLINE static void handled_flag_passed() { start_server(try_cache()); }
static long* volatile table_of_rows;
NOINLINE static long slot_of_cache() {
  char* cache = (char*)malloc(too_much);
  if (!cache) return 0;
  sink = cache[0];
  return 7;
}
NOINLINE static void handled_slot() {
  long slot = slot_of_cache();
  sink = table_of_rows[slot];
}
NOINLINE static void handled_heap_overrun() {
  char* rows = (char*)malloc(100000);
  if (!realloc(rows, too_much)) fprintf(stderr, "cannot grow\n");
  for (int i = 0; i < 3; ++i) work();
  char* line = (char*)malloc(100);
  for (size_t i = 0; i < too_much; i += 64) ((volatile char*)line)[i] = 2;
}

// --- The error path itself
// ---------------------------------------------------------------------------

NOINLINE static void free_twice() {
  char* names = (char*)malloc(2000);
  char* cells = (char*)malloc(too_much);
  if (!cells) {
    free(names);
    free(names);
    return;
  }
  sink = cells[0] + names[0];
}
ENDS_BY_JUMP static void free_it(char* block) {
  if (block != nullptr) sink += block[0];
  free(block);  // as a jump
}
ENDS_BY_JUMP static void free_twice_by_tail() {
  char* names = (char*)malloc(2000);
  names[0] = 1;
  char* cells = (char*)malloc(too_much);
  if (cells) {
    sink = cells[0] + names[0];
    return;
  }
  free(names);
  free_it(names);
}
NOINLINE static void free_twice_in_helper() {
  char* names = (char*)malloc(2000);
  names[0] = 1;
  char* cells = (char*)malloc(too_much);
  if (!cells) {
    free_it(names);
    free_it(names);
    fprintf(stderr, "no cells\n");
    return;
  }
  sink = cells[0] + names[0];
}
ENDS_BY_JUMP static void free_twice_last() {
  char* names = (char*)malloc(2000);
  char* cells = (char*)malloc(too_much);
  if (cells) {
    sink = cells[0] + names[0];
    return;
  }
  free(names);
  free(names);  // as a jump
}
ENDS_BY_JUMP static void handled_free_twice_by_tail() {
  char* names = (char*)malloc(2000);
  char* volatile same = names;
  names[0] = 1;
  char* cells = (char*)malloc(too_much);
  if (cells) sink = cells[0];
  free(same);
  free_it(names);
}
NOINLINE static void second_null() {
  try_cache();
  for (int i = 0; i < 30; ++i) kept[i] = malloc(100);
  volatile Table* table = (volatile Table*)malloc(too_much / 2);
  table->slots = 4;
}
NOINLINE static void second_abort() {
  try_cache();
  for (int i = 0; i < 30; ++i) kept[i] = malloc(100);
  if (!malloc(too_much / 2)) abort();
}
NOINLINE static void handled_second() {
  try_cache();
  char* smaller = (char*)malloc(too_much / 2);
  if (!smaller) fprintf(stderr, "no smaller cache either\n");
  goes_on_then_uses_null();
}

// --- A size that became 0
// -----------------------------------------------------------------------------

NOINLINE static void divide_zero() {
  long* cells = (long*)malloc(too_much);
  unsigned slots = cells ? 64 : 0;
  sink = 4711 % slots;
}
NOINLINE static unsigned slots_of_new_table() {
  long* cells = (long*)malloc(too_much);
  if (!cells) {
    fprintf(stderr, "no table\n");
    return 0;
  }
  cells[0] = 1;
  return 64;
}
NOINLINE static void divide_returned() {
  unsigned slots = slots_of_new_table();
  sink = 4711 % slots;
}
NOINLINE static void handled_divide_returned() {
  unsigned slots = slots_of_new_table();
  for (int i = 0; i < 3; ++i) work();
  sink = 4711 % ((unsigned)sink & 0);
  sink = slots;
}

// --- Exceptions
// -----------------------------------------------------------------------------------------

static std::exception_ptr failure;
NOINLINE static void load_model() {
  char* model = (char*)malloc(too_much);
  if (!model) throw std::runtime_error("out of memory: the model needs 64 TiB");
  sink = model[0];
}
NOINLINE static void try_load() {
  try {
    load_model();
  } catch (...) {
    failure = std::current_exception();
  }
}
NOINLINE static void what_kept() {
  try_load();
  for (int i = 0; i < 3; ++i) work();
  if (failure) std::rethrow_exception(failure);
}
NOINLINE static void what_in_future() {
  std::async(std::launch::async, [] { load_model(); }).get();
}
NOINLINE static void handled_what() {
  try_load();
  for (int i = 0; i < 3; ++i) work();
  throw std::runtime_error("the shared memory segment has version 3, not 4");
}
static void huge_thread_stacks() {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, too_much);
  pthread_setattr_default_np(&attributes);
}
NOINLINE static void thread_spawn() {
  huge_thread_stacks();
  std::thread([] { sink = 1; }).join();
}
NOINLINE static void thread_spawn_kept() {
  huge_thread_stacks();
  try {
    std::thread([] { sink = 1; }).join();
  } catch (...) {
    failure = std::current_exception();
  }
  for (int i = 0; i < 3; ++i) work();
  if (failure) std::rethrow_exception(failure);
}
NOINLINE static void handled_thread_spawn() {
  huge_thread_stacks();
  try {
    std::thread([] { sink = 1; }).join();
  } catch (const std::system_error&) {
    sink = 1;
  }
  for (int i = 0; i < 3; ++i) work();
  throw std::system_error(ENOENT, std::generic_category(), "config.ini");
}
NOINLINE static void handled_own_bad_alloc() {
  try {
    sink = *new char[too_much];
  } catch (const std::bad_alloc&) {
    fprintf(stderr, "doing without\n");
  }
  for (int i = 0; i < 3; ++i) work();
  nap_ms(3000);
  throw PoolIsEmpty{};
}

int main(int count, char** words) {
  char* held = hold(24);
  const struct {
    const char* how;
    void (*run)();
  } ways[] = {
#define WAY(name) {#name, name}
      WAY(loop_abort),
      WAY(loop_trap),
      WAY(loop_null),
      WAY(handled_loop_abort),
      WAY(handled_loop_null),
      WAY(strdup_used),
      WAY(handled_strdup),
      WAY(asprintf_used),
      WAY(handled_asprintf),
      WAY(fopen_fputs),
      WAY(handled_fopen),
      WAY(getline_used),
      WAY(asprintf_unset),
      WAY(asprintf_unset_freed),
      WAY(asprintf_measured),
      WAY(asprintf_freed_before),
      WAY(asprintf_elsewhere),
      WAY(vasprintf_returned),
      WAY(getline_unset),
      WAY(memalign_unset),
      WAY(handled_asprintf_unused),
      WAY(handled_asprintf_replaced),
      WAY(handled_getline),
      WAY(handled_memalign_unset),
      WAY(realpath_used),
      WAY(nothrow_wrapper),
      WAY(handled_nothrow_wrapper),
      WAY(pool_used),
      WAY(handled_pool),
      WAY(handled_code_stored),
      WAY(header_before),
      WAY(handled_header_before),
      WAY(realloc_overrun),
      WAY(handled_realloc),
      WAY(handled_flag_passed),
      WAY(handled_slot),
      WAY(handled_heap_overrun),
      WAY(free_twice),
      WAY(free_twice_by_tail),
      WAY(free_twice_in_helper),
      WAY(free_twice_last),
      WAY(handled_free_twice_by_tail),
      WAY(second_null),
      WAY(second_abort),
      WAY(handled_second),
      WAY(divide_zero),
      WAY(divide_returned),
      WAY(handled_divide_returned),
      WAY(what_kept),
      WAY(what_in_future),
      WAY(handled_what),
      WAY(thread_spawn),
      WAY(thread_spawn_kept),
      WAY(handled_thread_spawn),
      WAY(handled_own_bad_alloc),
  };
  for (const auto& way : ways)
    if (count > 1 && strcmp(way.how, words[1]) == 0) {
      dirty_stack();
      way.run();
    }
  sink = held[5];
  return 0;
}
