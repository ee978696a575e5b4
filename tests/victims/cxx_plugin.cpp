// A C++ library for C programs: its new fails, and it catches its own bad_alloc.
#include <cstddef>
#include <new>

static int asked = 0;

static void give_up_the_second_time() {
  if (++asked == 2) std::set_new_handler(nullptr);
}

template <class New>
static int calls_of_handler(New make) {
  asked = 0;
  std::set_new_handler(give_up_the_second_time);
  try {
    void* volatile block = make();
    return block != nullptr ? -1 : -2;
  } catch (const std::bad_alloc&) {
    return asked;
  }
}

// Calls of the handler before the exception; negative without an exception.
extern "C" int refused_new(std::size_t n) {
  return calls_of_handler([=] { return ::operator new(n); });
}

extern "C" int refused_aligned_new(std::size_t n) {
  return calls_of_handler([=] { return ::operator new (n, std::align_val_t{256}); });
}

extern "C" int refused_nothrow_new(std::size_t n) {
  return ::operator new(n, std::nothrow) == nullptr;
}

// Whether new throws without a handler.
extern "C" int throwing_new(std::size_t n) {
  std::set_new_handler(nullptr);
  try {
    char* volatile block = new char[n];
    delete[] block;
    return 0;
  } catch (const std::bad_alloc&) {
    return 1;
  }
}
