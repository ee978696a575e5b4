/* Crashes after a refused request. Argument: the way. Those before `handled_null` are consequences
 * of the refusal; in the others the program has dealt with it, and crashes for another reason.
 */
#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "impossible_sizes.h"

static volatile size_t asked = TOO_MUCH + 307;
static char* volatile stored;
static struct node {
  struct node* next;
  int value;
}* volatile list;
static volatile int zero;

static void serve(int requests) {
  for (int i = 0; i < requests; ++i) free(malloc(100 + (size_t)i));
}

/* --- Consequences ------------------------------------------------------------------------------
 */

static void at_once(void) {
  volatile char* block = malloc(asked);
  block[16] = 1;
}
static void far_inside(void) {
  volatile char* block = malloc(asked);
  for (size_t i = 200000; i < 300000; ++i) block[i] = (char)i;
}
static void by_memset(void) {
  stored = malloc(asked);
  memset(stored, 1, 4096);
}
static volatile void* tried(size_t bytes) {
  volatile void* block = malloc(bytes);
  if (block == NULL) fprintf(stderr, "cannot get %zu bytes\n", bytes);
  return block;
}
static void from_wrapper(void) {
  volatile char* block = tried(asked);
  block[100] = 1;
}
__attribute__((noinline)) static void use_stored(void) { stored[8] = 1; }
__attribute__((noinline)) static void store(void) { stored = malloc(asked); }
static void stored_long_ago(void) {
  store();
  serve(500);
  sleep(12);
  use_stored();
}
static void grown(void) {
  volatile char* block = malloc(64);
  block = realloc(block, asked);
  block[63] = 1;
}
static void mapped(void) {
  volatile char* pages =
      mmap(NULL, asked, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  pages[64] = 1;
}
static void asserted(void) {
  volatile char* block = malloc(asked);
  assert(block != NULL);
  block[0] = 1;
}
static void given_up(void) {
  volatile char* block = malloc(asked);
  if (block == NULL) {
    fputs("out of memory\n", stderr);
    abort();
  }
  block[0] = 1;
}
static void die(const char* why) {
  fprintf(stderr, "fatal: %s\n", why);
  abort();
}
static char* must_get(size_t bytes) {
  char* block = malloc(bytes);
  if (!block) die("memory");
  return block;
}
static void given_up_by_wrapper(void) { must_get(asked)[0] = 1; }
static int reserve(char** block) {
  *block = malloc(asked);
  return *block == NULL ? -1 : 0;
}
static void given_up_by_code(void) {
  char* block;
  if (reserve(&block) < 0) abort();
  block[0] = 1;
}

/* --- Unrelated ---------------------------------------------------------------------------------
 */

static void handle(void) {
  char* block = malloc(asked);
  if (block == NULL) fputs("doing without\n", stderr);
  free(block);
}
static void null_elsewhere(void) { list->next = NULL; }
static void handled_null(void) {
  handle();
  null_elsewhere();
}
static void handled_null_later(void) {
  handle();
  serve(500);
  null_elsewhere();
}
static void inline_null(void) {
  char* block = malloc(asked);
  if (block == NULL) fputs("doing without\n", stderr);
  list->value = 1;
  free(block);
}
static void retried(void) {
  size_t bytes = asked;
  char* block;
  while ((block = malloc(bytes)) == NULL) bytes /= 1024;
  block[0] = 1;
  null_elsewhere();
}
static void wild(void) {
  handle();
  *(volatile char*)0x12345678 = 1;
}
static void freed_twice(void) {
  handle();
  char* volatile block = malloc(2000);
  char* volatile next = malloc(2000);  // else the block joins the unused end of the heap
  free(block);
  free(block);
  free(next);
}
static void asserted_other(void) {
  char* block = malloc(asked);
  if (block == NULL) fputs("doing without\n", stderr);
  assert(zero == 1);
  free(block);
}
static void gave_up_other(void) {
  handle();
  if (zero == 0) abort();
}
static int dig(volatile char* above, int depth) {
  volatile char room[512];
  room[0] = above[0];
  return depth < 0 ? 0 : dig(room, depth + 1) + room[0];
}
static void overflowed(void) {
  handle();
  dig("x", 1);
}
static void* null_in_thread(void* unused) {
  null_elsewhere();
  return unused;
}
static void in_thread(void) {
  handle();
  pthread_t thread;
  pthread_create(&thread, NULL, null_in_thread, NULL);
  pthread_join(thread, NULL);
}
static void divided(void) {
  handle();
  zero = 1000 / zero;
}
static void trapped(void) {
  handle();
  __builtin_trap();
}

int main(int count, char** words) {
  static const struct {
    const char* way;
    void (*crash)(void);
  } kWays[] = {
#define WAY(name) {#name, name}
      WAY(at_once),
      WAY(far_inside),
      WAY(by_memset),
      WAY(from_wrapper),
      WAY(stored_long_ago),
      WAY(grown),
      WAY(mapped),
      WAY(asserted),
      WAY(given_up),
      WAY(given_up_by_wrapper),
      WAY(given_up_by_code),
      WAY(handled_null),
      WAY(handled_null_later),
      WAY(inline_null),
      WAY(retried),
      WAY(wild),
      WAY(freed_twice),
      WAY(asserted_other),
      WAY(gave_up_other),
      WAY(overflowed),
      WAY(in_thread),
      WAY(divided),
      WAY(trapped),
  };
  for (size_t i = 0; i < sizeof kWays / sizeof *kWays; ++i)
    if (count > 1 && strcmp(kWays[i].way, words[1]) == 0) kWays[i].crash();
  return 9;
}
