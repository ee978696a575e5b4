/* Maps pages of alternating protection, which do not merge, until mmap fails. Then requests a block
 * that malloc has to map.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int main(int count, char** words) {
  const int most = count > 1 ? atoi(words[1]) : 100000;
  static char buffer[4096];
  setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
  int made = 0;
  while (made < most && mmap(NULL, 4096, made % 2 == 0 ? PROT_READ : PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
    ++made;
  printf("%s\n", made < most ? strerrorname_np(errno) : "room for more");
  void* volatile block = malloc(5 << 20);
  printf("malloc %s\n", block != NULL ? "granted" : "refused");
}
