// Nobody catches the std::bad_alloc. With a word, that one is caught, and the next exception is
// not.
#include <new>
#include <stdexcept>

#include "refused.h"

static char* volatile block;

int main(int count, char**) {
  if (count < 2) block = new char[TOO_MUCH + 223];
  try {
    block = new char[TOO_MUCH + 227];
  } catch (const std::bad_alloc&) {
    throw std::runtime_error("without memory");
  }
  return 9;
}
