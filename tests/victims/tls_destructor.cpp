// Allocates and frees in destructors of thread-locals, and after the thread's last function.
#include <pthread.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

static int destroyed = 0;

struct Late {
  char* volatile block = static_cast<char*>(std::malloc(100003));
  ~Late() {
    std::free(block);
    void* volatile another = std::malloc(100019);
    std::free(another);
    ++destroyed;
  }
};
static thread_local Late late;

static pthread_key_t key;
static void at_thread_end(void* block) { std::free(block); }

int main() {
  pthread_key_create(&key, at_thread_end);
  for (int i = 0; i < 20; ++i) {
    std::thread([] {
      late.block[0] = 1;
      pthread_setspecific(key, std::malloc(100043));
    }).join();
  }
  std::printf("%d destroyed\n", destroyed);
}
