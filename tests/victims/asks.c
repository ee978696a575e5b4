/* Makes COUNT requests of one kind: asks KIND COUNT [BYTES]. Prints the numbers of those that
 * failed, with their errors.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static size_t bytes = 5001;
static char text[6001];

static void* nothing(void* argument) { return argument; }

/* The errno of a failure; 0: it succeeded. */
static int ask(const char* kind) {
  void* volatile block = NULL;
  errno = 0;
  if (strcmp(kind, "malloc") == 0) return (block = malloc(bytes)) != NULL ? 0 : errno;
  if (strcmp(kind, "calloc") == 0) return (block = calloc(1, bytes)) != NULL ? 0 : errno;
  if (strcmp(kind, "strdup") == 0) return (block = strdup(text)) != NULL ? 0 : errno;
  if (strcmp(kind, "realloc") == 0) {
    static void* volatile grown;
    block = realloc(grown, bytes += 4096);
    if (block == NULL) return errno;
    grown = block;
    return 0;
  }
  if (strcmp(kind, "posix_memalign") == 0) {
    void* aligned;
    return posix_memalign(&aligned, 64, bytes);
  }
  if (strcmp(kind, "mmap") == 0) {
    block = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return block != MAP_FAILED ? 0 : errno;
  }
  if (strcmp(kind, "pthread_create") == 0) {
    pthread_t thread;
    const int result = pthread_create(&thread, NULL, nothing, NULL);
    if (result == 0) pthread_join(thread, NULL);
    return result;
  }
  if (strcmp(kind, "fork") == 0) {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    if (child > 0) waitpid(child, NULL, 0);
    return child > 0 ? 0 : errno;
  }
  return -1;
}

int main(int count, char** words) {
  const int requests = atoi(words[2]);
  if (count > 3) bytes = (size_t)atol(words[3]);
  static char buffer[1 << 16];
  setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
  memset(text, 'x', 6000);
  for (int i = 1; i <= requests; ++i) {
    const int error = ask(words[1]);
    if (error != 0) printf("%d %s\n", i, strerrorname_np(error));
  }
}
