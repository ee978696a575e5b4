#include "tools/processes/stress/steps.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>

#include "common/machine/page.h"
#include "tools/base/text.h"
#include "tools/processes/stress/gpu.h"

namespace oomrec::tools::processes {
namespace {

void touch_pages(void* block, std::size_t bytes) {
  auto* const at = static_cast<volatile char*>(block);
  for (std::size_t i = 0; i < bytes; i += machine::page_bytes()) at[i] = 1;
}

void* map_pages(std::size_t bytes) {
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return at != MAP_FAILED ? at : nullptr;
}

// Allocates that many bytes; returns the error, or an empty text.
using Allocator = std::function<std::string(std::size_t bytes)>;

Allocator on_host(const StressPlan& plan) {
  return [&plan](std::size_t bytes) -> std::string {
    void* const block = plan.space == "heap" ? std::malloc(bytes) : map_pages(bytes);
    if (block == nullptr) return std::strerror(errno);
    if (plan.pages == Pages::touched) touch_pages(block, bytes);
    return {};
  };
}

Allocator on_device(Space space, unsigned ordinal) {
  return [gpu = Gpu{space, ordinal}](std::size_t bytes) { return gpu.allocate(bytes); };
}

Allocator allocator_of(const StressPlan& plan) {
  if (plan.space == "cuda") return on_device(Space::cuda, plan.device);
  if (plan.space == "hip") return on_device(Space::hip, plan.device);
  return on_host(plan);
}

}  // namespace

bool allocate_in_steps(const StressPlan& plan) {
  const Allocator allocate = allocator_of(plan);
  for (std::uint64_t held = 0; held < plan.max_bytes;) {
    const std::uint64_t bytes = std::min(plan.step_bytes, plan.max_bytes - held);
    if (const std::string why_not = allocate(bytes); !why_not.empty()) {
      fmt::print("refused at {}: {}\n", size_text(held), why_not);
      return false;
    }
    held += bytes;
    fmt::print("{} of {}\n", size_text(held), size_text(plan.max_bytes));
    std::fflush(stdout);
  }
  std::this_thread::sleep_for(std::chrono::duration<double>{plan.hold_s});
  return true;
}

}  // namespace oomrec::tools::processes
