// `new` of 6 MiB five times, with a new-handler that frees nothing. Prints the result of
// each.
#include <cstdio>
#include <new>

int main() {
  static int handled = 0;
  std::set_new_handler([] {
    ++handled;
    std::set_new_handler(nullptr);
  });
  for (int i = 1; i <= 5; ++i) {
    try {
      char* volatile block = new char[6 << 20];
      std::printf("%d granted\n", i);
      delete[] block;
    } catch (const std::bad_alloc&) {
      std::printf("%d bad_alloc\n", i);
    }
  }
  std::printf("handled %d\n", handled);
}
