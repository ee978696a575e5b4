// Uncaught exceptions and aborts after a refused request. Argument: the way. Those before `logic`
// are consequences of the refusal.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "impossible_sizes.h"

namespace {

volatile std::size_t asked = TOO_MUCH + 311;
char* volatile block;

struct NoMemory : std::runtime_error {
  NoMemory() : std::runtime_error("no memory") {}
};
struct PoolIsEmpty : std::bad_alloc {};

void uncaught() { block = new char[asked]; }
void resized() {
  std::vector<char> bytes;
  bytes.resize(asked);
  block = bytes.data();
}
void rethrown() {
  try {
    uncaught();
  } catch (const std::exception&) {
    throw;
  }
}
void translated() {
  try {
    uncaught();
  } catch (const std::bad_alloc&) {
    throw NoMemory{};
  }
}
void own_exception() {
  char* const pointer = static_cast<char*>(std::malloc(asked));
  if (pointer == nullptr) throw NoMemory{};
  block = pointer;
}
void derived_exception() {
  char* const pointer = static_cast<char*>(std::malloc(asked));
  if (pointer == nullptr) throw PoolIsEmpty{};
  block = pointer;
}
void kept_and_rethrown() {
  std::exception_ptr kept;
  try {
    uncaught();
  } catch (...) {
    kept = std::current_exception();
  }
  std::rethrow_exception(kept);
}
void aborted_in_handler() {
  try {
    uncaught();
  } catch (const std::bad_alloc&) {
    std::abort();
  }
}
void nothrow_used() {
  volatile char* const pointer = new (std::nothrow) char[asked];
  pointer[32] = 1;
}

void handle() {
  try {
    uncaught();
  } catch (const std::bad_alloc&) {
    std::fputs("doing without\n", stderr);
  }
}
void logic() {
  handle();
  throw std::logic_error("wrong state");
}
void out_of_range() {
  handle();
  std::vector<int> none;
  block[none.at(3)] = 1;
}
void aborted_later() {
  handle();
  std::abort();
}
void after_nothrow() {
  char* const pointer = new (std::nothrow) char[asked];
  if (pointer == nullptr) std::fputs("doing without\n", stderr);
  block = pointer;
  throw std::invalid_argument(std::string(100, 'x'));
}

}  // namespace

int main(int count, char** words) {
  const struct {
    const char* way;
    void (*crash)();
  } ways[] = {
#define WAY(name) {#name, name}
      WAY(uncaught),          WAY(resized),
      WAY(rethrown),          WAY(translated),
      WAY(own_exception),     WAY(derived_exception),
      WAY(kept_and_rethrown), WAY(aborted_in_handler),
      WAY(nothrow_used),      WAY(logic),
      WAY(out_of_range),      WAY(aborted_later),
      WAY(after_nothrow),
  };
  for (const auto& [way, crash] : ways)
    if (count > 1 && std::strcmp(way, words[1]) == 0) crash();
  return 9;
}
