/* in_trouble LIMIT [ROOM]: uses up a limit but for ROOM, then allocates and verifies for each byte
 * of input. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static void fail(const char* what) {
  perror(what);
  exit(9);
}

static void limit(int resource, rlim_t most) {
  struct rlimit both;
  if (getrlimit(resource, &both) != 0) fail("getrlimit");
  both.rlim_cur = most; /* the hard limit stays, so that the soft one can be raised from outside */
  if (setrlimit(resource, &both) != 0) fail("setrlimit");
}

static rlim_t used(const char* field) {
  char line[256];
  long kib = 0;
  FILE* const file = fopen("/proc/self/status", "r");
  while (fgets(line, sizeof line, file) != NULL)
    if (strncmp(line, field, strlen(field)) == 0) kib = atol(line + strlen(field) + 1);
  fclose(file);
  return (rlim_t)kib * 1024;
}

static int work(void) {
  static char* kept[64];
  int wrong = 0;
  for (int i = 0; i < 20000; ++i) {
    char** const at = &kept[i % 64];
    wrong += *at != NULL && **at != (char)(i - 64);
    free(*at);
    *at = malloc((size_t)(1 + i % 300));
    if (*at == NULL)
      ++wrong;
    else
      **at = (char)i;
  }
  for (int i = 0; i < 64; ++i) {
    free(kept[i]);
    kept[i] = NULL;
  }
  return wrong;
}

static void become_nobody(void) {
  if (setgroups(0, NULL) != 0 || setgid(65534) != 0 || setuid(65534) != 0) fail("setuid");
}

/* As a program that reads symbols does. The kernel places later mappings at lower addresses. */
static void map_own_libraries(void) {
  char line[512], path[512];
  FILE* const file = fopen("/proc/self/maps", "r");
  while (fgets(line, sizeof line, file) != NULL) {
    if (sscanf(line, "%*s r-%*cp 00000000 %*s %*s %511s", path) != 1) continue;
    const int library = open(path, O_RDONLY);
    struct stat facts;
    if (library < 0 || fstat(library, &facts) != 0) continue;
    const size_t bytes = (size_t)facts.st_size;
    if (mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, library, 0) == MAP_FAILED) fail("mmap");
    close(library);
  }
  fclose(file);
}

static void use_up(const char* what, long room, char** words) {
  const rlim_t bytes = (rlim_t)room;
  if (strcmp(what, "address_space") == 0) limit(RLIMIT_AS, used("VmSize") + bytes);
  if (strcmp(what, "data") == 0) limit(RLIMIT_DATA, used("VmData") + bytes);
  if (strcmp(what, "file_size") == 0) limit(RLIMIT_FSIZE, bytes);
  if (strcmp(what, "processes") == 0) limit(RLIMIT_NPROC, bytes);
  if (strcmp(what, "umask") == 0) umask(0777);
  if (strcmp(what, "deleted") == 0) unlink(words[0]);
  if (strcmp(what, "privileges") == 0) become_nobody();
  if (strcmp(what, "root") == 0 && (chroot(words[2]) != 0 || chdir("/") != 0)) fail("chroot");
  if (strcmp(what, "descriptors") == 0) {
    limit(RLIMIT_NOFILE, 32);
    while (open("/dev/null", O_RDONLY) >= 0) {
    }
    for (int last = 31; room > 0; --room) close(last--);
  }
  if (strcmp(what, "locked") == 0) {
    mlockall(MCL_CURRENT | MCL_FUTURE);
    limit(RLIMIT_MEMLOCK, used("VmLck") + bytes);
    become_nobody(); /* root may lock more */
  }
  if (strcmp(what, "mappings") == 0) {
    for (;;) {
      char* const pages = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (pages == MAP_FAILED || mprotect(pages, 4096, PROT_NONE) != 0) break;
    }
  }
  if (strcmp(what, "libraries") == 0) map_own_libraries();
  if (strcmp(what, "memory") == 0) memset(malloc((size_t)bytes), 1, (size_t)bytes);
}

int main(int count, char** words) {
  static char output[4096]; /* else stdio may have none when it is needed */
  setvbuf(stdout, output, _IOLBF, sizeof output);
  work();
  use_up(words[1], count > 2 ? atol(words[2]) : 0, words);
  puts("ready");
  for (char line; read(0, &line, 1) == 1;) {
    errno = 77;
    const int wrong = work();
    printf("wrong %d errno %d\n", wrong, errno);
  }
  puts("ended");
  return 0;
}
