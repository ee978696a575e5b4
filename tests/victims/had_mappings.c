/* Has mappings, large blocks, threads' stacks and arenas, and releases them as it is told on stdin:
 * u N unmaps mapping N, h N its first half, f N frees block N, m a new mapping, q ends. Answers
 * each with a line. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { kMappings = 4, kBlocks = 6, kThreads = 3 };
static const size_t kMappingBytes = 10 << 20, kBlockBytes = 40 << 20;

static void* map(size_t bytes, int protection) {
  void* const at = mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) exit(2);
  return at;
}

static void* allocate_and_sleep(void* done) {
  void* volatile block = malloc(1000); /* in an arena of this thread's */
  pthread_barrier_wait(done);
  for (;;) pause();
  return block;
}

int main(void) {
  char* mappings[kMappings];
  void* blocks[kBlocks];
  /* In turns, so that mappings and blocks adjoin, and the kernel merges them. */
  for (int i = 0; i < kBlocks; ++i) {
    blocks[i] = malloc(kBlockBytes);
    memset(blocks[i], 1, 1000);
    if (i < kMappings) {
      mappings[i] = map(kMappingBytes, PROT_READ | PROT_WRITE);
      memset(mappings[i], 1, 1 << 20);
    }
  }
  map(kMappingBytes, PROT_NONE);
  map(kMappingBytes, PROT_READ);
  pthread_barrier_t done;
  pthread_barrier_init(&done, NULL, kThreads + 1);
  for (int i = 0; i < kThreads; ++i) {
    pthread_t thread;
    pthread_create(&thread, NULL, allocate_and_sleep, &done);
  }
  pthread_barrier_wait(&done);
  for (;;) {
    puts("ready");
    fflush(stdout);
    char what = 0;
    int number = 0;
    if (scanf(" %c %d", &what, &number) != 2 || what == 'q') return 0;
    if (what == 'u') munmap(mappings[number], kMappingBytes);
    if (what == 'h') munmap(mappings[number], kMappingBytes / 2);
    if (what == 'f') free(blocks[number]);
    if (what == 'm') memset(map(kMappingBytes, PROT_READ | PROT_WRITE), 1, 1000);
  }
}
