/* Loads the given libraries within half a GiB of address space, and prints the loader's errors. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

int main(int count, char** names) {
  struct rlimit limit = {512 << 20, 512 << 20};
  setrlimit(RLIMIT_AS, &limit);
  for (int i = 1; i < count; ++i) {
    if (dlopen(names[i], RTLD_NOW)) return 1;
    puts(strrchr(dlerror(), ':'));
  }
  puts(dlerror() ? "another complaint" : "no more complaints");
}
