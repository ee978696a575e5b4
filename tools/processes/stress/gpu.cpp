#include "tools/processes/stress/gpu.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "common/text/text.h"
#include "tools/base/error.h"

namespace oomrec::tools::processes {
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
