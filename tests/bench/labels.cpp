// labels WHAT ROUNDS: CPU time, in ns, of one push and pop of a label ("push"), of one malloc of 64
// KiB and free without labels ("none"), and of the same under two labels ("blocks"). Without a
// recorder, or with one without labels, labels cost nothing.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "cpu_time.h"
#include "include/oomrec.h"

namespace {

void push_and_pop() {
  OOMREC_CALL(oomrec_context_push, "batch 7");
  OOMREC_CALL(oomrec_context_pop);
}

void make_and_free() {
  void* volatile block = std::malloc(64 * 1024);
  std::free(block);
}

double ns_each(void (*call)(), std::uint64_t rounds) {
  for (std::uint64_t i = 0; i < rounds / 8; ++i) call();  // start-up, which is measured elsewhere
  const double began = cpu_ns();
  for (std::uint64_t i = 0; i < rounds; ++i) call();
  return (cpu_ns() - began) / static_cast<double>(rounds);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string_view what = argv[1];
  const std::uint64_t rounds = std::strtoull(argv[2], nullptr, 10);
  if (what != "none") OOMREC_CALL(oomrec_context_push, "epoch 3");
  if (what == "blocks") OOMREC_CALL(oomrec_context_push, "batch 7");
  print_figure(ns_each(what == "push" ? push_and_pop : make_and_free, rounds));
}
