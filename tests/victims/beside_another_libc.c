/* beside_another_libc: uses what the library hooks, under a C library for which it is not made.
   With "wait": allocates as lines of stdin request ("N": N MiB), to be watched from outside. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void* churn(void* out) {
  for (size_t i = 1; i < 2000; i++) {
    char* block = realloc(calloc(i, 3), i * 7);
    if (block == NULL) return NULL;
    block[i * 7 - 1] = 1;
    free(block);
  }
  *(int*)out = 1;
  return out;
}

static int wait_for_lines(void) {
  char line[32];
  puts("ready");
  fflush(stdout);
  while (fgets(line, sizeof line, stdin) != NULL) {
    const size_t bytes = (size_t)atol(line) << 20;
    char* block = malloc(bytes);
    if (block == NULL) return 1;
    memset(block, 1, bytes);
    puts("did");
    fflush(stdout);
  }
  return 0;
}

int main(int count, char** words) {
  if (count > 1 && strcmp(words[1], "wait") == 0) return wait_for_lines();
  int in_thread = 0;
  pthread_t thread;
  if (pthread_create(&thread, NULL, churn, &in_thread) != 0) return 1;
  int in_main = 0;
  churn(&in_main);
  pthread_join(thread, NULL);
  void* pages = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED || munmap(pages, 65536) != 0) return 1;
  void* aligned = NULL;
  if (posix_memalign(&aligned, 4096, 100) != 0) return 1;
  free(aligned);
  /* A static program of musl has no other symbol. */
  size_t (*length)(const char*) = (size_t(*)(const char*))dlsym(RTLD_DEFAULT, "strlen");
  signal(SIGSEGV, SIG_DFL);
  const pid_t child = fork();
  if (child == 0) {
    int in_child = 0;
    churn(&in_child);
    _exit(in_child + 2);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child) return 1;
  const char* preload = getenv("LD_PRELOAD");
  printf("threads %d %d, child %d, dlsym %d\n", in_thread, in_main, WEXITSTATUS(status),
         length == NULL || length("four") == 4);
  printf("preload %s\n", preload ? preload : "none");
  return 7;
}
