// Fibres of Boost.Context, each of which allocates whenever its turn comes:
// fibres fixed|protected FIBRES TURNS ends|asks|dies.
//
// "fixed" stacks come from malloc, next to each other; "protected" ones from mmap, with a guard
// page. In its first turn each fibre keeps a block. After all turns the last fibre ends the
// program: in order, after a request that is refused, or by SIGKILL.
#include <boost/context/fiber.hpp>
#include <boost/context/fixedsize_stack.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "impossible_sizes.h"

namespace {

namespace context = boost::context;

constexpr std::size_t kStack = 64 << 10, kKept = 200'003, kPassing = 100'003;

std::string_view g_end;
bool g_is_last = false;
unsigned long g_sum = 0;
void* volatile g_block;

void keep_in_fibre() { g_block = std::malloc(kKept); }

void pass_in_fibre(int number) {
  g_block = std::malloc(kPassing);
  std::memset(g_block, number, kPassing);
  g_sum = g_sum * 31 + static_cast<unsigned>(number);
  std::free(g_block);
}

void end_in_fibre() {
  if (g_end == "asks") g_block = std::malloc(TOO_MUCH + 1);
  if (g_end == "dies") std::raise(SIGKILL);
}

template <class Stack>
context::fiber fibre_on(int number) {
  const auto body = [number](context::fiber&& caller) {
    keep_in_fibre();
    while (!g_is_last) {
      pass_in_fibre(number);
      caller = std::move(caller).resume();
    }
    end_in_fibre();
    return std::move(caller);
  };
  return {std::allocator_arg, Stack{kStack}, body};
}

}  // namespace

int main(int count, char** words) {
  if (count != 5) return 2;
  const bool is_fixed = std::string_view{words[1]} == "fixed";
  const int all = std::atoi(words[2]), turns = std::atoi(words[3]);
  g_end = words[4];
  std::vector<context::fiber> fibres;
  for (int i = 0; i < all; ++i) {
    fibres.push_back(is_fixed ? fibre_on<context::fixedsize_stack>(i)
                              : fibre_on<context::protected_fixedsize_stack>(i));
  }
  for (int turn = 0; turn < turns; ++turn) {
    for (context::fiber& fibre : fibres) fibre = std::move(fibre).resume();
  }
  g_is_last = true;
  fibres.back() = std::move(fibres.back()).resume();
  std::printf("%lu\n", g_sum);
  std::fflush(stdout);
  std::_Exit(0);  // no stack is unwound
}
