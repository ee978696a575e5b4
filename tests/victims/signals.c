/* Handlers that map, and that allocate where the program itself is not inside malloc: COUNT
   signals interrupt whatever stands between the two. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile int stop, handled;
static __thread volatile int in_malloc;

static void* map(size_t bytes) {
  return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void handle(int signal) {
  (void)signal;
  ++handled;
  if (!in_malloc) free(malloc(70000 + (size_t)(handled % 1000)));
  char* const pages = map(8192);
  pages[0] = 1;
  munmap(pages, 8192);
}

static void* work(void* unused) {
  for (unsigned i = 1; !stop; i = i * 1103515245 + 12345) {
    in_malloc = 1;
    char* const block = malloc(1 + i % 90000);
    in_malloc = 0;
    block[0] = 1;
    munmap(mremap(map(65536), 65536, 131072, MREMAP_MAYMOVE), 131072);
    in_malloc = 1;
    free(block);
    in_malloc = 0;
  }
  return unused;
}

int main(int words, char** arguments) {
  if (words < 2) return 2;
  const int count = atoi(arguments[1]);
  struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
  sigaction(SIGUSR1, &action, NULL);
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, work, NULL);
  for (int i = 0; handled < count; ++i) {  // a signal is lost while another is pending
    pthread_kill(threads[i % 2], SIGUSR1);
    usleep(100);
  }
  stop = 1;
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  puts("handled all");
}
