#include "tools/processes/simulate/deaths.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <thread>
#include <vector>

#include "common/system/units.h"
#include "tools/processes/simulate/scenario.h"

extern "C" const char kSimulatedDriver[], kSimulatedDriverEnd[];

namespace oomrec::tools::processes {
namespace {

constexpr std::size_t kTooMuch = std::size_t{1} << 46;
constexpr std::size_t kWorthABundle = 20 * kMiB;

void* volatile g_kept;  // keeps the compiler from removing the request

void leave_no_core() {
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
}

void* request(std::size_t bytes) {
  g_kept = std::malloc(bytes);
  return g_kept;
}

void die_of(int signal) {
  request(kWorthABundle);
  std::raise(signal);
}

// The allocation starts the recording if nothing has before: the log line must be later.
void be_killed_by_kernel(const char* cause) {
  request(kWorthABundle);
  record_kill(cause);
  std::raise(SIGKILL);
}

// Keeps a mount over /dev/shm in this namespace. The root of a chroot need not be a mount.
bool make_mounts_private() {
  for (const char* const point : {"/", "/dev/shm", "/dev"})
    if (mount(nullptr, point, nullptr, MS_REC | MS_PRIVATE, nullptr) == 0) return true;
  return false;
}

}  // namespace

void use_null() {
  leave_no_core();
  *static_cast<volatile char*>(request(kTooMuch)) = 1;
}

void leave_bad_alloc_uncaught() {
  leave_no_core();
  std::set_terminate(std::abort);  // prints no message
  // The C++ library's operator new: the command's own does not call malloc.
  using New = void* (*)(std::size_t);
  void* const library = dlopen("libstdc++.so.6", RTLD_NOW);
  if (library == nullptr) return;
  const auto library_new = reinterpret_cast<New>(dlsym(library, "_Znwm"));
  [&]() noexcept { g_kept = library_new(kTooMuch); }();
}

void abort_after_failure() {
  leave_no_core();
  if (request(kTooMuch) == nullptr) std::abort();
}

void use_wild_pointer() {
  leave_no_core();
  request(kWorthABundle);
  volatile char* volatile const wild = reinterpret_cast<volatile char*>(std::uintptr_t{8});
  *wild = 1;
}

void be_killed() { die_of(SIGKILL); }
void be_terminated() { die_of(SIGTERM); }

void be_killed_in_cgroup() { be_killed_by_kernel("Memory cgroup out of memory"); }
void be_killed_by_machine() { be_killed_by_kernel("Out of memory"); }

void lose_a_worker() {
  const pid_t worker = fork();
  if (worker == 0) be_killed_in_cgroup();
  waitpid(worker, nullptr, 0);
}

// Mounts over /dev/shm in a namespace of this process. Returns if that is not permitted.
void fill_shared_memory() {
  leave_no_core();
  const int namespaces = CLONE_NEWNS | (geteuid() == 0 ? 0 : CLONE_NEWUSER);
  if (unshare(namespaces) != 0 || !make_mounts_private() ||
      mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=1m") != 0)
    return;
  const int file = open("/dev/shm/simulated", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ftruncate(file, 2 * kMiB) != 0) return;
  void* const pages = mmap(nullptr, 2 * kMiB, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (pages == MAP_FAILED) return;
  for (std::size_t at = 0; at < 2 * kMiB; at += 4096) static_cast<volatile char*>(pages)[at] = 1;
}

// The recorder checks limits during allocations, at most ten times a second.
void stay_near_limit() {
  constexpr int kRounds = 50;
  for (int round = 0; round < kRounds; ++round) {
    std::free(request(kMiB));
    std::this_thread::sleep_for(std::chrono::milliseconds{10});
  }
}

namespace {

constexpr std::size_t kDeviceBlock = 128 * kMiB;

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
  while (device.allocate(kDeviceBlock)) {
  }
}

void fragment_device() {
  const Device device;
  std::vector<std::uint64_t> blocks;
  for (std::uint64_t block = 0; blocks.size() < 6 && device.allocate_in_order(block, kDeviceBlock);)
    blocks.push_back(block);
  for (std::size_t i = 0; i < blocks.size(); i += 2) device.free_in_order(blocks[i]);
  std::uint64_t block = 0;
  device.allocate_in_order(block, 3 * kDeviceBlock);
}

}  // namespace oomrec::tools::processes
