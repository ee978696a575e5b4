// Locked memory and huge pages. locks HOW: exits with 5 when refused.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "truth.h"

// Root may lock without limit, by CAP_IPC_LOCK.
static int without_capabilities(void) {
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct data[2];
  if (syscall(SYS_capget, &header, data) != 0) return 0;
  data[0].effective &= ~(1u << CAP_IPC_LOCK);
  data[0].permitted &= ~(1u << CAP_IPC_LOCK);
  return syscall(SYS_capset, &header, data) == 0;
}

int main(int argc, char** argv) {
  const char* how = argv[1];
  const size_t bytes = 32 << 20;
  char* held = hold(24);
  if (!without_capabilities()) return 9;
  if (!strcmp(how, "mlock")) return mlock(held, 8 << 20) == 0 ? 0 : 5;
  if (!strcmp(how, "within")) return mlock(held, 16 << 10) == 0 ? 0 : 5;
  if (!strcmp(how, "mlockall")) return mlockall(MCL_CURRENT | MCL_FUTURE) == 0 ? 0 : 5;
  int flags = MAP_PRIVATE | MAP_ANONYMOUS;
  flags |= !strncmp(how, "hugetlb", 7) ? MAP_HUGETLB : MAP_LOCKED;
  void* map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (map == MAP_FAILED && !strcmp(how, "hugetlb_fallback"))
    map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) return 5;
  memset(map, 1, bytes);
  return 0;
}
