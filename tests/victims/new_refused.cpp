// Five times `new` of 6 MiB, with a new-handler that can give nothing back: prints what each came
// to.
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
