// Loads a plugin and lets it work: host LIBRARY scan|match.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>

namespace {

// The bystander.
__attribute__((noinline)) void measure() {
  const auto block = std::make_unique<std::string>(2'700'000, 'm');
  asm volatile("" : : "r"(block->data()) : "memory");
}

}  // namespace

int main(int, char** words) {
  void* const library = dlopen(words[1], RTLD_NOW);
  if (library == nullptr) return 2;
  const std::string name = std::string{"engine_"} + words[2];
  const auto work = reinterpret_cast<void (*)(int)>(dlsym(library, name.c_str()));
  for (int number = 0;; ++number) {
    work(number);
    measure();
    usleep(10'000);
  }
}
