// An engine that runs out of memory in a way of choice: engine CAUSE [killed].
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t kStep = 256 << 10;
constexpr std::size_t kEnough = 40 << 20;

using Block = std::vector<char>;
std::vector<Block> g_warm;

template <class Key>
class Index {
 public:
  __attribute__((noinline)) void insert(Key) { blocks_.emplace_back(kStep, 'i'); }

 private:
  std::vector<Block> blocks_;
};
Index<int> g_index;
std::vector<std::string> g_lines;
struct Node {
  std::unique_ptr<Node> next;
  Block block;
};
Node g_root;

__attribute__((noinline)) void add_document() { g_index.insert(7); }

__attribute__((noinline)) void write_log() { g_lines.push_back(std::string(kStep, 'l')); }

__attribute__((noinline)) void extend(Node& node, int depth) {
  if (depth == 0) {
    auto next = std::make_unique<Node>();
    next->block.assign(kStep, 'n');
    next->next = std::move(node.next);
    node.next = std::move(next);
    return;
  }
  extend(node, depth - 1);
}

std::vector<Block> g_results;
__attribute__((noinline)) void compute() {
  std::thread{[] { g_results.emplace_back(kStep, 'r'); }}.join();
}

// Asks for more at once than anybody else, and keeps none of it.
__attribute__((noinline)) void sample() {
  Block block(6 * kStep, 's');
  asm volatile("" : : "r"(block.data()) : "memory");
}

__attribute__((noinline)) void warm() {
  for (int i = 0; i < 30; ++i) g_warm.emplace_back(kStep, 'w');
}

std::function<void()> step_of(const std::string& cause) {
  if (cause == "index") return add_document;
  if (cause == "log") return write_log;
  if (cause == "chain") return [] { extend(g_root, 4); };
  return compute;
}

}  // namespace

int main(int count, char** words) {
  const std::function<void()> step = step_of(words[1]);
  warm();
  for (std::size_t held = 0;;) {
    for (int i = 0; i < 8; ++i, held += kStep) step();
    if (count > 2 && held > kEnough) raise(SIGKILL);
    sample();
  }
}
