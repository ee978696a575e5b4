// Allocates before and after everything else: in an IFUNC resolver, in a static initializer, in an
// exit handler, in a destructor that runs last.
#include <cstdio>
#include <cstdlib>
#include <cstring>

static char* volatile in_resolver;
extern "C" {
static int answer() { return 42; }
// Runs while the loader binds this program, before any constructor.
__attribute__((visibility("hidden"))) int (*resolve())() {
  in_resolver = static_cast<char*>(std::malloc(10007));
  return answer;
}
int resolved() __attribute__((ifunc("resolve")));
}

struct Block {
  char* volatile bytes = new char[100003];
  ~Block() {
    delete[] bytes;
    bytes = new char[100019];
    std::memset(bytes, 1, 100019);
  }
};
static Block block;

static void at_exit() { std::free(std::malloc(100043)); }

__attribute__((destructor(101))) static void last() {
  std::free(std::realloc(std::malloc(100049), 200003));
  std::puts("last");
  std::fflush(stdout);
}

int main() {
  std::atexit(at_exit);
  std::printf("%d %d %d\n", resolved(), in_resolver != nullptr, block.bytes != nullptr);
  std::free(in_resolver);
}
