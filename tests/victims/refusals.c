/* One function of the C library fails: refusals WAY. Each prints the results and what errno is. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "impossible_sizes.h"

static void limit_address_space(size_t bytes) {
  const struct rlimit limit = {bytes, RLIM_INFINITY};
  setrlimit(RLIMIT_AS, &limit);
}

static void aligned(void) {
  void* block = aligned_alloc(64, TOO_MUCH + 109 * 64);
  printf("%p %d\n", block, errno);
}

/* It returns the error, and keeps errno. Also an invalid call. */
static void posix_aligned(void) {
  void* block = &block;
  errno = 7;
  int misuse = posix_memalign(&block, 3, 100);
  int refused = posix_memalign(&block, 64, TOO_MUCH + 107);
  printf("misuse %d refused %d errno is mine %d\n", misuse, refused, errno == 7 || errno == ENOMEM);
}

/* A product that overflows size_t, and requests of 0 bytes, which are not failures. */
static void product(void) {
  volatile size_t many = (size_t)1 << 40;
  void* zero = malloc(0);
  void* gone = realloc(malloc(10), 0);
  errno = 0;
  void* block = calloc(many, many);
  printf("%d %d %p errno %d\n", zero != NULL, gone != NULL, block, errno);
  free(zero);
}

/* Grows a buffer until realloc fails. Its contents must survive. */
static void growth(void) {
  limit_address_space(256ul << 20);
  size_t bytes = 1 << 20;
  char* block = malloc(bytes);
  strcpy(block, "still here");
  for (;;) {
    char* larger = realloc(block, bytes + bytes / 2);
    if (larger == NULL) break;
    block = larger;
    bytes += bytes / 2;
  }
  printf("%s, refused %zu\n", block, bytes + bytes / 2);
  free(block);
}

/* Holds half of the limit and requests all of it. */
static void own_limit(void) {
  limit_address_space(512ul << 20);
  char* volatile half = malloc(256ul << 20);
  char* volatile whole = malloc((512ul << 20) + 139);
  printf("%d %d\n", half != NULL, whole == NULL);
}

/* Mappings with a fallback (probes), then one without. */
static void mapping(void) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS, access = PROT_READ | PROT_WRITE;
  void* huge = mmap(NULL, TOO_MUCH + (113ul << 21), access, flags | MAP_HUGETLB, -1, 0);
  void* hinted = mmap((void*)0x10000000, TOO_MUCH + 4096, access, flags, -1, 0);
  errno = 0;
  void* plain = mmap(NULL, 2 * TOO_MUCH + 127, access, flags, -1, 0);
  printf("%d %d %d errno %d\n", huge == MAP_FAILED, hinted == MAP_FAILED, plain == MAP_FAILED,
         errno);
}

/* Grows a mapping until it fails: first in place (a probe), then at any address. */
static void remapping(void) {
  const size_t bytes = 1 << 20;
  void* at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  at = mremap(at, bytes, 2 * bytes, MREMAP_MAYMOVE);
  void* in_place = mremap(at, 2 * bytes, TOO_MUCH + 4096, 0);
  errno = 0;
  void* moved = mremap(at, 2 * bytes, TOO_MUCH + 131 * 4096ul, MREMAP_MAYMOVE);
  printf("%d %d %d errno %d\n", at != MAP_FAILED, in_place == MAP_FAILED, moved == MAP_FAILED,
         errno);
}

static void* run(void* nothing) { return nothing; }

/* The requested stack does not fit. */
static void thread(void) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 4 * TOO_MUCH);
  pthread_t thread;
  printf("EAGAIN %d\n", pthread_create(&thread, &attributes, run, NULL) == EAGAIN);
}

static void* fail(void* number) { return malloc(TOO_MUCH + 1000 + 2 * (size_t)number); }

/* 64 of them, each with one failure of a different size. */
static void threads(void) {
  pthread_t threads[64];
  int refused = 0;
  for (size_t i = 0; i < 64; ++i) pthread_create(&threads[i], NULL, fail, (void*)i);
  for (size_t i = 0; i < 64; ++i) {
    void* block;
    pthread_join(threads[i], &block);
    refused += block == NULL;
  }
  printf("%d refused\n", refused);
}

/* A limit of tasks. Root is exempt, so it becomes nobody. */
static void forking(void) {
  const struct rlimit none = {0, 0};
  if (setrlimit(RLIMIT_NPROC, &none) != 0 || (geteuid() == 0 && setuid(65534) != 0)) exit(77);
  const pid_t child = fork();
  if (child == 0) _exit(0);
  printf("%d EAGAIN %d\n", child, errno == EAGAIN);
}

int main(int count, char** words) {
  const struct {
    const char* way;
    void (*run)(void);
  } ways[] = {{"aligned_alloc", aligned}, {"posix_memalign", posix_aligned},
              {"calloc", product},        {"realloc", growth},
              {"own_limit", own_limit},   {"mmap", mapping},
              {"mremap", remapping},      {"thread", thread},
              {"threads", threads},       {"fork", forking}};
  for (size_t i = 0; count > 1 && i < sizeof ways / sizeof *ways; ++i) {
    if (strcmp(ways[i].way, words[1]) != 0) continue;
    ways[i].run();
    return 0;
  }
  return 2;
}
