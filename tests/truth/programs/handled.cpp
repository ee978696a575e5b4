// A cache asks for too much and does without it. The work goes on, and then something else breaks.
// handled WHAT [SECONDS]: WHAT breaks.
#include <assert.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>

#include <map>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "truth.h"

#define NOINLINE __attribute__((noinline))

struct Node {
  long key;
  long weights[4];
  Node* next;
};

static volatile long sink;
static size_t too_much = (size_t)1 << 46;

NOINLINE bool try_cache() {
  char* cache = (char*)malloc(too_much);
  if (!cache) {
    fprintf(stderr, "no cache, going on without\n");
    return false;
  }
  sink = cache[0];
  return true;
}

NOINLINE bool try_vector() {
  try {
    char* cache = new char[too_much];
    sink = cache[0];
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

static jmp_buf on_failure;
NOINLINE bool try_and_jump() {
  if (setjmp(on_failure) != 0) return false;
  char* cache = (char*)malloc(too_much);
  if (!cache) longjmp(on_failure, 1);
  sink = cache[0];
  return true;
}

NOINLINE void work() {
  std::vector<std::string> rows;
  for (int i = 0; i < 4000; ++i) rows.push_back(std::string(200 + i % 50, 'r'));
  sink = (long)rows.size();
}

NOINLINE Node* lookup(long key) { return key == sink + 1 ? new Node() : nullptr; }
NOINLINE long overflow(int depth) {
  volatile char frame[4096];
  frame[0] = (char)depth;
  return overflow(depth + 1) + frame[0];
}
NOINLINE int divide(int by) { return 100 / by; }

NOINLINE void grows() {
  for (int i = 0; i < 400; ++i) hold(1);
}

NOINLINE void breaks(const std::string& what) {
  if (what == "null") sink = lookup(77)->next->key;
  if (what == "wild") *(volatile long*)0x5151515151515150 = 1;
  if (what == "unmapped") *(volatile char*)((long)&sink + (64l << 30)) = 1;
  if (what == "free_twice") {
    char* volatile block = (char*)malloc(2000);
    free((void*)block);
    free((void*)block);
  }
  if (what == "assert") assert(sink == 77);
  if (what == "overflow") sink = overflow(0);
  if (what == "out_of_range") sink = std::vector<int>(3).at(9);
  if (what == "map_at") sink = std::map<int, int>{{1, 2}}.at(4);
  if (what == "runtime_error") throw std::runtime_error("bad configuration");
  if (what == "divide") sink = divide((int)(sink & 0));
  if (what == "readonly") *(volatile char*)"text" = 'x';
  if (what == "call_null") ((void (*)())(sink & 0))();
  if (what == "illegal") __builtin_trap();
  if (what == "terminate") std::terminate();
  if (what == "abort") abort();
  if (what == "grow") grows();
  if (what == "rest") {
    ready();
    for (;;) pause();
  }
  if (what == "raise") raise(SIGSEGV);
}

static std::string what_breaks;
static void* in_thread(void*) {
  work();
  breaks(what_breaks);
  return nullptr;
}

int main(int argc, char** argv) {
  what_breaks = argv[1];
  std::string how = argc > 2 ? argv[2] : "malloc";
  char* held = hold(24);
  if (how == "malloc") try_cache();
  if (how == "new") try_vector();
  if (how == "jump") try_and_jump();
  if (how == "often")
    for (int i = 0; i < 5; ++i) try_cache();
  if (how == "thread") {
    try_cache();
    pthread_t thread;
    pthread_create(&thread, nullptr, in_thread, nullptr);
    pthread_join(thread, nullptr);
  }
  for (int i = 0; i < 5; ++i) work();
  nap_ms(50);
  if (argc > 3) nap_ms(atol(argv[3]));
  breaks(what_breaks);
  sink = held[5];
  return 0;
}
