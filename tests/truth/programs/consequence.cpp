// A request is refused, and the program breaks because of it. consequence HOW.
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include <future>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "truth.h"

#define NOINLINE __attribute__((noinline))

static size_t too_much = (size_t)1 << 46;
static volatile long sink;

struct Matrix {
  size_t rows, columns;
  double* cells;
};
struct Image {
  char header[64];
  int width, height;
  unsigned char pixels[1];
};
static Matrix g_matrix;
static Image* g_image;

NOINLINE double* cells_of(size_t count) { return (double*)malloc(count * sizeof(double)); }
NOINLINE void fill(Matrix* matrix) {
  for (size_t i = 0; i < matrix->rows; ++i) matrix->cells[i * 100] = (double)i;
}
NOINLINE void xmalloc_abort(size_t bytes) {
  if (!malloc(bytes)) {
    fprintf(stderr, "fatal: out of memory\n");
    abort();
  }
}
NOINLINE void xmalloc_exit(size_t bytes) {
  if (!malloc(bytes)) {
    fprintf(stderr, "fatal: out of memory\n");
    exit(2);
  }
}
NOINLINE void xmalloc_trap(size_t bytes) {
  if (!malloc(bytes)) __builtin_trap();
}
NOINLINE void small_work() {
  std::vector<std::string> rows;
  for (int i = 0; i < 300; ++i) rows.push_back(std::string(300, 'w'));
  sink = (long)rows.size();
}
static void* fills(void*) {
  memset(malloc(too_much), 1, 4096);
  return nullptr;
}
static void on_new_failure() {
  fprintf(stderr, "new handler: giving up\n");
  abort();
}

NOINLINE void breaks(const std::string& how, char* held) {
  if (how == "memset") memset(malloc(too_much), 0, too_much);
  if (how == "first_byte") *(volatile char*)malloc(too_much) = 1;
  if (how == "far_index") ((volatile char*)malloc(too_much))[40 << 20] = 1;
  if (how == "member") {
    g_matrix = {1000, 1000, cells_of(too_much / 8)};
    fill(&g_matrix);
  }
  if (how == "struct_field") {
    g_image = (Image*)malloc(too_much);
    g_image->height = 5;
  }
  if (how == "stored_then_worked") {
    g_image = (Image*)malloc(too_much);
    for (int i = 0; i < 3; ++i) small_work();
    g_image->width = 5;
  }
  if (how == "stored_long") {
    g_image = (Image*)malloc(too_much);
    nap_ms(11500);
    g_image->width = 5;
  }
  if (how == "calloc") ((volatile int*)calloc(1 << 20, 1 << 26))[3] = 1;
  if (how == "realloc") ((volatile char*)realloc(held, too_much))[1] = 1;
  if (how == "strcpy") strcpy((char*)malloc(too_much), "a line of text");
  if (how == "read_null") sink = ((volatile char*)malloc(too_much))[100];
  if (how == "mmap") {
    void* map = mmap(nullptr, too_much, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ((volatile char*)map)[0] = 1;
  }
  if (how == "xmalloc_abort") xmalloc_abort(too_much);
  if (how == "xmalloc_exit") xmalloc_exit(too_much);
  if (how == "xmalloc_trap") xmalloc_trap(too_much);
  if (how == "vector") std::vector<char>(too_much).at(1) = 1;
  if (how == "make_unique") std::make_unique<char[]>(too_much)[0] = 1;
  if (how == "shared") std::make_shared<std::vector<long>>(too_much / 8);
  if (how == "string") std::string(too_much, 'x');
  if (how == "reserve") std::vector<double>().reserve(too_much / 8);
  if (how == "rethrown") {
    try {
      sink = *new char[too_much];
    } catch (...) {
      small_work();
      throw;
    }
  }
  if (how == "wrapped") {
    try {
      sink = *new char[too_much];
    } catch (const std::bad_alloc&) {
      throw std::runtime_error("the model does not fit in memory");
    }
  }
  if (how == "noexcept") []() noexcept { sink = *new char[too_much]; }();
  if (how == "std_thread") std::thread([] { sink = *new char[too_much]; }).join();
  if (how == "future")
    std::async(std::launch::async, [] { return (int)*new char[too_much]; }).get();
  if (how == "new_handler") {
    std::set_new_handler(on_new_failure);
    sink = *new char[too_much];
  }
  if (how == "nothrow") *(volatile char*)(new (std::nothrow) char[too_much]) = 1;
  if (how == "pthread") {
    pthread_t thread;
    pthread_create(&thread, nullptr, fills, nullptr);
    pthread_join(thread, nullptr);
  }
  if (how == "signal_self") {
    if (!malloc(too_much)) raise(SIGABRT);
  }
}

int main(int argc, char** argv) {
  char* held = hold(24);
  breaks(argv[1], held);
  return 0;
}
