// The profiler functions that libc10 exports, by the manglings of old and new versions. PyTorch's
// libraries call one of each. These count the calls.
#pragma once

#include <cstddef>
#include <cstdint>

namespace c10 {

struct Device {
  std::int8_t type;
  std::int8_t index;
};

// 1.13
void reportMemoryUsageToProfiler(void* block, std::int64_t change, std::int64_t allocated,
                                 std::int64_t reserved, Device device);
void reportOutOfMemoryToProfiler(std::int64_t bytes, std::int64_t allocated, std::int64_t reserved,
                                 Device device);
// 2.x
void reportMemoryUsageToProfiler(void* block, std::int64_t change, std::size_t allocated,
                                 std::size_t reserved, Device device);
void reportOutOfMemoryToProfiler(std::int64_t bytes, std::size_t allocated, std::size_t reserved,
                                 Device device);
void reportOutOfMemoryToProfiler(std::size_t bytes, std::size_t allocated, std::size_t reserved,
                                 Device device);

bool memoryProfilingEnabled();

}  // namespace c10

// The number of calls: for blocks, for failures.
extern "C" std::size_t c10_memory_reports();
extern "C" std::size_t c10_failure_reports();
