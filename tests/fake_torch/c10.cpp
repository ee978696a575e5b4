#include "tests/fake_torch/c10.h"

namespace {
std::size_t g_memory = 0, g_failures = 0;
}

namespace c10 {

void reportMemoryUsageToProfiler(void*, std::int64_t, std::int64_t, std::int64_t, Device) {
  ++g_memory;
}
void reportMemoryUsageToProfiler(void*, std::int64_t, std::size_t, std::size_t, Device) {
  ++g_memory;
}
void reportOutOfMemoryToProfiler(std::int64_t, std::int64_t, std::int64_t, Device) { ++g_failures; }
void reportOutOfMemoryToProfiler(std::int64_t, std::size_t, std::size_t, Device) { ++g_failures; }
void reportOutOfMemoryToProfiler(std::size_t, std::size_t, std::size_t, Device) { ++g_failures; }

bool memoryProfilingEnabled() { return false; }

}  // namespace c10

std::size_t c10_memory_reports() { return g_memory; }
std::size_t c10_failure_reports() { return g_failures; }
