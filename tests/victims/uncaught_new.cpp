// An uncaught std::bad_alloc. With "again" it is caught and rethrown; with "noexcept" a function
// between throw and handler prevents the catch; with "other" it is caught, but the next exception
// is not.
#include <cstring>
#include <new>
#include <stdexcept>

#include "impossible_sizes.h"

static char* volatile block;

static void ask_noexcept() noexcept { block = new char[TOO_MUCH + 229]; }

int main(int count, char** words) {
  if (count < 2) block = new char[TOO_MUCH + 223];
  try {
    if (std::strcmp(words[1], "noexcept") == 0) ask_noexcept();
    block = new char[TOO_MUCH + 227];
  } catch (const std::bad_alloc&) {
    if (std::strcmp(words[1], "again") == 0) throw;
    throw std::runtime_error("without memory");
  }
  return 9;
}
