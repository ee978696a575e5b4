// Coroutines on stacks of their own. fibres null | handled | grow.
#include <sys/mman.h>
#include <ucontext.h>

#include "truth.h"

static ucontext_t g_main, g_fibre;
static const char* g_what;
static char* volatile g_block;

__attribute__((noinline)) static void grow_in_fibre(void) {
  for (int i = 0; i < 400; ++i) hold(1);
}

static void asks(void) {
  if (!strcmp(g_what, "grow")) grow_in_fibre();
  g_block = malloc((size_t)1 << 46);
  if (!strcmp(g_what, "null")) g_block[7] = 1;
}

static void breaks(void) {
  for (int i = 0; i < 500; ++i) free(malloc(100 + i));
  *(volatile char*)0x4141414141414000 = 1;
}

static void enter(void (*function)(void)) {
  const size_t bytes = 256 << 10;
  getcontext(&g_fibre);
  g_fibre.uc_stack.ss_sp =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  g_fibre.uc_stack.ss_size = bytes;
  g_fibre.uc_link = &g_main;
  makecontext(&g_fibre, function, 0);
  swapcontext(&g_main, &g_fibre);
}

int main(int argc, char** argv) {
  g_what = argv[1];
  hold(24);
  enter(asks);
  enter(breaks);
  return 0;
}
