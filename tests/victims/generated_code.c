// Calls malloc through code that was made at run time, and keeps a map of it for perf, as Node.js
// does.
//
//   generated_code [kill]   keeps 80 blocks of a MiB by way of two functions; the map also has a
//   line
//                           of what was at their addresses before. kill: ends by SIGKILL
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef void call_function(void (*function)(void));

#ifdef __aarch64__
// stp x29, x30, [sp, -16]!; mov x29, sp; blr x0; ldp x29, x30, [sp], 16; ret
static const uint32_t kCode[] = {0xa9bf7bfd, 0x910003fd, 0xd63f0000, 0xa8c17bfd, 0xd65f03c0};
#else
// push %rbp; mov %rsp, %rbp; call *%rdi; nop; pop %rbp; ret
static const uint8_t kCode[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x90, 0x5d, 0xc3};
#endif

static char* g_code;
static void* g_kept[80];
static int g_count;

static void keep(void) {
  void* block = malloc(1 << 20);
  memset(block, 1, 1 << 20);
  g_kept[g_count++] = block;
}
static void inner(void) { ((call_function*)g_code)(keep); }

int main(int count, char** words) {
  g_code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(g_code, kCode, sizeof kCode);
  memcpy(g_code + 64, kCode, sizeof kCode);
  mprotect(g_code, 4096, PROT_READ | PROT_EXEC);
  char path[64];
  snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
  FILE* map = fopen(path, "w");
  const unsigned long at = (unsigned long)g_code;
  fprintf(map, "%lx 1000 JS:~was_here_before /srv/old.js:1:1\n", at);
  fprintf(map, "%lx 20 JS:~keepImage /srv/app/cache.js:12:17\n", at);
  fprintf(map, "%lx 20 JS:*get onRequest file:///srv/app/my server.js:3:22\n", at + 64);
  fprintf(map, "not a line\n%lx", at);  // cut short
  fclose(map);
  for (int i = 0; i < 80; i++) ((call_function*)(g_code + 64))(inner);
  if (count > 1 && strcmp(words[1], "kill") == 0) raise(SIGKILL);
  return 0;
}
