#include "tools/processes/simulate/devices.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <vector>

extern "C" const char kSimulatedDriver[], kSimulatedDriverEnd[];

namespace oomrec::tools::processes {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kStep = 128 * kMiB;

// Loads it from memory, so that no other program can find it as a file.
void* load_driver() {
  const int file = memfd_create("oomrec-simulated-driver", MFD_CLOEXEC);
  const auto bytes = static_cast<std::size_t>(kSimulatedDriverEnd - kSimulatedDriver);
  if (file < 0 || write(file, kSimulatedDriver, bytes) != static_cast<ssize_t>(bytes))
    return nullptr;
  void* const driver = dlopen(fmt::format("/proc/self/fd/{}", file).c_str(), RTLD_NOW);
  close(file);
  return driver;
}

// Calls the driver. Looks up each function, as most programs do.
class Device {
 public:
  Device() : driver_(load_driver()) {
    if (driver_ == nullptr) return;
    void* context = nullptr;
    call<int(unsigned)>("cuInit", 0U);
    call<int(void**, int)>("cuDevicePrimaryCtxRetain", &context, 0);
    call<int(void*)>("cuCtxSetCurrent", context);
  }

  bool allocate(std::size_t bytes) const {
    std::uint64_t block = 0;
    return call<int(std::uint64_t*, std::size_t)>("cuMemAlloc_v2", &block, bytes) == 0;
  }

  bool allocate_in_order(std::uint64_t& block, std::size_t bytes) const {
    void* const stream = nullptr;
    return call<int(std::uint64_t*, std::size_t, void*)>("cuMemAllocAsync", &block, bytes,
                                                         stream) == 0;
  }

  void free_in_order(std::uint64_t block) const {
    void* const stream = nullptr;
    call<int(std::uint64_t, void*)>("cuMemFreeAsync", block, stream);
  }

 private:
  template <class Function, class... Arguments>
  int call(const char* name, Arguments... arguments) const {
    constexpr int kNoDriver = 3;  // CUDA_ERROR_NOT_INITIALIZED
    auto* const function =
        driver_ != nullptr ? reinterpret_cast<Function*>(dlsym(driver_, name)) : nullptr;
    return function != nullptr ? function(arguments...) : kNoDriver;
  }

  void* driver_;
};

}  // namespace

void fill_device() {
  const Device device;
  while (device.allocate(kStep)) {
  }
}

void fragment_device() {
  const Device device;
  std::vector<std::uint64_t> blocks;
  for (std::uint64_t block = 0; blocks.size() < 6 && device.allocate_in_order(block, kStep);)
    blocks.push_back(block);
  for (std::size_t i = 0; i < blocks.size(); i += 2) device.free_in_order(blocks[i]);
  std::uint64_t block = 0;
  device.allocate_in_order(block, 3 * kStep);
}

}  // namespace oomrec::tools::processes
