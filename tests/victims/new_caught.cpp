// Catches std::bad_alloc and continues. The new-handler counts its calls.
#include <cstdio>
#include <new>

#include "impossible_sizes.h"

static int asked = 0;

static void give_up_the_second_time() {
  if (++asked == 2) std::set_new_handler(nullptr);
}

int main() {
  std::set_new_handler(give_up_the_second_time);
  try {
    char* volatile block = new char[2 * TOO_MUCH + 103];
    std::printf("%s after %d calls of the handler\n", block ? "given" : "refused", asked);
  } catch (const std::bad_alloc& error) {
    std::printf("caught %s after %d calls of the handler\n", error.what(), asked);
  }
  char* volatile none = new (std::nothrow) char[2 * TOO_MUCH + 104];
  char* volatile small = new char[1003];
  std::printf("nothrow %s, small %s\n", none ? "given" : "refused", small ? "given" : "refused");
  delete[] small;
}
