#include "tools/processes/stress/stress.h"

#include <dlfcn.h>
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
#include "common/text/text.h"
#include "tools/base/environment.h"
#include "tools/base/error.h"
#include "tools/base/programs.h"
#include "tools/base/text.h"
#include "tools/processes/launch/facts.h"
#include "tools/processes/supervise/self.h"

namespace oomrec::tools::processes {
namespace {

// Allocates GPU memory through the installed driver: opens it by name and calls only documented
// functions, without a vendor's header.
class Gpu {
 public:
  // `space`: cuda or hip. Throws Error if there is no driver or no such device.
  Gpu(Space space, unsigned ordinal);

  // Empty: allocated until the process ends. Else the driver's error name.
  std::string allocate(std::uint64_t bytes) const;

 private:
  int (*allocate_)(void** block, std::size_t bytes);
  Space space_;
};

// The size of a GPU limits its memory.
bool is_limited(const StressPlan& plan, const std::string& limit) {
  return plan.is_on_device() || !limit.empty() || !environment_variable("OOMREC_LIMIT").empty() ||
         !environment_variable("OOMREC_LIMIT_AS").empty() || !limits_in_force().empty();
}

}  // namespace

int run_stress(const StressPlan& plan, const std::string& limit,
               const std::vector<std::string>& child_words) {
  if (!is_limited(plan, limit)) {
    throw Error{Exit::bad_input, "no limit is set: the machine itself would run out of memory",
                "Set a limit: oomrec stress --limit 256M --max 1G"};
  }
  std::vector<std::string> options;
  if (!limit.empty()) options = {plan.is_on_device() ? "--limit-gpu" : "--limit", limit};
  return exit_code_of(run_self({options, child_words}).ended.wait_status);
}

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

namespace {

class Driver {
 public:
  Driver(const char* maker, const char* library)
      : maker_(maker), library_(library), handle_(dlopen(library, RTLD_NOW | RTLD_GLOBAL)) {
    if (handle_ != nullptr) return;
    throw Error{Exit::bad_input, fmt::format("there is no {} driver here: {}", maker, dlerror()),
                "In a container, GPUs must be passed in when it is started."};
  }

  template <class Function>
  Function* find(const char* name) const {
    if (void* const found = dlsym(handle_, name)) return reinterpret_cast<Function*>(found);
    throw Error{Exit::bad_input, fmt::format("{} has no function {}", library_, name),
                "Is it the real driver?"};
  }

  // Throws if a call fails that must precede allocations.
  void check(int result, const char* function) const {
    if (result == 0) return;
    throw Error{Exit::bad_input,
                fmt::format("the {} driver is installed but does not work: {} returned {}", maker_,
                            function, result),
                "Does the machine have a GPU, and may this user open it?"};
  }

  void check_device(int count, unsigned ordinal) const {
    if (ordinal < static_cast<unsigned>(count)) return;
    throw Error{Exit::bad_input,
                fmt::format("there is no device {}: the {} driver has {}", ordinal, maker_, count),
                "CUDA_VISIBLE_DEVICES and HIP_VISIBLE_DEVICES hide and renumber devices."};
  }

 private:
  const char* maker_;
  const char* library_;
  void* handle_;  // never closed: a driver cannot be unloaded
};

using Allocate = int(void**, std::size_t);

Allocate* open_cuda(int ordinal) {
  const Driver driver{"CUDA", "libcuda.so.1"};
  driver.check(driver.find<int(unsigned)>("cuInit")(0), "cuInit");
  int count = 0;
  driver.check(driver.find<int(int*)>("cuDeviceGetCount")(&count), "cuDeviceGetCount");
  driver.check_device(count, static_cast<unsigned>(ordinal));
  int device = 0;
  driver.check(driver.find<int(int*, int)>("cuDeviceGet")(&device, ordinal), "cuDeviceGet");
  void* context = nullptr;
  driver.check(driver.find<int(void**, int)>("cuDevicePrimaryCtxRetain")(&context, device),
               "cuDevicePrimaryCtxRetain");
  driver.check(driver.find<int(void*)>("cuCtxSetCurrent")(context), "cuCtxSetCurrent");
  return driver.find<Allocate>("cuMemAlloc_v2");  // a CUdeviceptr is as wide as a pointer
}

Allocate* open_hip(int ordinal) {
  const Driver driver{"HIP", "libamdhip64.so"};
  int count = 0;
  driver.check(driver.find<int(int*)>("hipGetDeviceCount")(&count), "hipGetDeviceCount");
  driver.check_device(count, static_cast<unsigned>(ordinal));
  driver.check(driver.find<int(int)>("hipSetDevice")(ordinal), "hipSetDevice");
  return driver.find<Allocate>("hipMalloc");
}

}  // namespace

Gpu::Gpu(Space space, unsigned ordinal)
    : allocate_((space == Space::hip ? open_hip : open_cuda)(static_cast<int>(ordinal))),
      space_(space) {}

std::string Gpu::allocate(std::uint64_t bytes) const {
  void* block = nullptr;
  const int result = allocate_(&block, bytes);
  if (result == 0) return {};
  const std::string_view name = text::error_name(space_, result);
  return name.empty() ? fmt::format("the driver's result was {}", result) : std::string{name};
}

}  // namespace oomrec::tools::processes
