// Allocates and frees in steps, one for each line on its standard input; says what malloc has given
// out after each. Blocks from before the first line are freed later. Step 2 loads the library in
// its first argument, which allocates, if there is one; the last step forks, and the child
// allocates.
#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
  kBefore = 1000,
  kBeforeBytes = 10007,
  kSmall = 4000,
  kSmallBytes = 1009,
  kLargeBytes = 7000001
};

void* allocate_small(void) { return malloc(kSmallBytes); }
void* allocate_large(void) { return calloc(1, kLargeBytes); }
void* map_some(void) {
  return mmap(NULL, 3 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void step(void) {
  const struct mallinfo2 now = mallinfo2();
  printf("%zu\n", now.uordblks + now.hblkhd);
  fflush(stdout);
  char line[8];
  if (read(0, line, sizeof line) < 1) exit(3);
}

int main(int count, char** words) {
  static void *before[kBefore], *small[kSmall];
  for (int i = 0; i < kBefore; ++i) before[i] = malloc(kBeforeBytes);
  step();
  for (int i = 0; i < kSmall; ++i) small[i] = allocate_small();
  void* const large = allocate_large();
  void* const mapped = map_some();
  for (int i = 0; i < kBefore / 2; ++i) free(before[i]);
  step();
  if (count > 1) {
    void* const library = dlopen(words[1], RTLD_NOW);
    void* (*const plugin)(size_t) =
        library == NULL ? NULL : (void* (*)(size_t))dlsym(library, "plugin_allocate");
    if (plugin == NULL || plugin(5000011) == NULL) return 4;
  }
  for (int i = kBefore / 2; i < kBefore; ++i) free(before[i]);
  for (int i = 0; i < kSmall; ++i) free(small[i]);
  step();
  const pid_t child = fork();
  if (child == 0) {
    void* const of_child[] = {allocate_large(), allocate_large()};
    if (of_child[0] == NULL || of_child[1] == NULL) return 5;
    pause();
  }
  printf("%d\n", (int)child);
  step();
  return large == NULL || mapped == MAP_FAILED;
}
