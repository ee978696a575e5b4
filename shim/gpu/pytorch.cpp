// PyTorch's allocators report each block to libc10, for torch.profiler. libc10 calls these
// functions of its own by their exported names, and so calls ours.
//
// The profiler gets the same reports as without us. They come from inside an allocator that holds
// its lock: no driver is queried here. The loader is entered only once, in the first call (python
// loads libc10 privately, where RTLD_NEXT does not find it).
#include "shim/gpu/pytorch.h"

#include <dlfcn.h>

#include "recorder/device_memory/pytorch.h"
#include "recorder/devices/pytorch.h"
#include "recorder/devices/registry.h"
#include "recorder/recorder.h"
#include "shim/interpose/export.h"
#include "shim/interpose/loader.h"

namespace oomrec::shim::gpu {
namespace {

// c10::Device
struct Device {
  std::int8_t type;
  std::int8_t index;
};
constexpr const char* kLibrary = "libc10.so";
constexpr std::int8_t kCpu = 0, kCuda = 1, kHip = 6;

// Each version of libc10 has one of each group; they differ in the signedness of integers.
// clang-format off
#define OOMREC_MEMORY_REPORTERS(X) \
  X(_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE) \
  X(_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE)
#define OOMREC_FAILURE_REPORTERS(X) \
  X(_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE) \
  X(_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE) \
  X(_ZN3c1027reportOutOfMemoryToProfilerEmmmNS_6DeviceE)
#define OOMREC_TORCH_FUNCTIONS(X) \
  OOMREC_MEMORY_REPORTERS(X) OOMREC_FAILURE_REPORTERS(X) X(_ZN3c1022memoryProfilingEnabledEv)
// clang-format on

using MemoryReporter = void(void*, std::int64_t, std::uint64_t, std::uint64_t, Device);
using FailureReporter = void(std::int64_t, std::uint64_t, std::uint64_t, Device);
using IsProfiling = bool();

struct Function {
  const char* name;
  std::atomic<void*> real{nullptr};  // nullptr: absent in this libc10
};
#define X(symbol) constinit Function g_##symbol{#symbol};
OOMREC_TORCH_FUNCTIONS(X)
#undef X
#define X(symbol) &g_##symbol,
constexpr Function* kFunctions[] = {OOMREC_TORCH_FUNCTIONS(X)};
#undef X
constinit std::atomic<bool> g_resolved{false};

// The library with these functions; nullptr: they are in the libraries after ours, or nowhere.
// `caller`: an address in libc10, or in a library that depends on it.
void* open_libc10(const void* caller) noexcept {
  void* const by_name = g_next.dlopen(kLibrary, RTLD_LAZY | RTLD_NOLOAD);
  if (by_name != nullptr) return by_name;
  Dl_info info;
  return ::dladdr(caller, &info) != 0 ? g_next.dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD)
                                      : nullptr;
}

// Threads may do this concurrently, because all find the same.
[[gnu::cold, gnu::noinline]] void resolve(const void* caller) noexcept {
  const LoaderScope loader;
  void* const library = open_libc10(caller);
  for (Function* const function : kFunctions) {
    void* found = real_dlsym()(RTLD_NEXT, function->name);
    if (found == nullptr && library != nullptr) found = real_dlsym()(library, function->name);
    function->real.store(found, std::memory_order_relaxed);
  }
  if (library != nullptr) g_next.dlclose(library);
  recorder::set_torch_present();
  g_resolved.store(true, std::memory_order_release);
}

template <class Real>
Real* real_of(const Function& function, const void* caller) noexcept {
  if (!g_resolved.load(std::memory_order_acquire)) [[unlikely]]
    resolve(caller);
  return reinterpret_cast<Real*>(function.real.load(std::memory_order_relaxed));
}

// PyTorch also says CUDA for an AMD GPU: use the driver that has such a device.
std::uint32_t entry_of(InHook hook, Device device) noexcept {
  using session::Vendor;
  const std::uint32_t cuda =
      device.type == kCuda ? recorder::device_entry(hook, Vendor::cuda, device.index) : 0;
  if (cuda != 0 || (device.type != kCuda && device.type != kHip)) return cuda;
  return recorder::device_entry(hook, Vendor::hip, device.index);
}

// Not noexcept, like the functions below: a profiler's exceptions pass through.
bool is_profiling(const void* caller) {
  IsProfiling* const real = real_of<IsProfiling>(g__ZN3c1022memoryProfilingEnabledEv, caller);
  return real != nullptr && real();
}

// On the CPU, its allocator reports only while memory is profiled, or because we said so.
bool is_recorded(Device device) noexcept {
  return recorder::is_active() && HookScope::idle() &&
         (device.type != kCpu || recorder::wants_torch_on_cpu());
}
bool is_forwarded(Device device, const void* caller) {
  return device.type != kCpu || !recorder::wants_torch_on_cpu() || is_profiling(caller);
}

// Inlined into the hook, so that the stack starts at the hook's caller.
[[gnu::always_inline]] inline void report_memory(Function& function, void* block,
                                                 std::int64_t change, std::uint64_t allocated,
                                                 std::uint64_t reserved, Device device) {
  const void* const caller = __builtin_return_address(0);
  MemoryReporter* const real = real_of<MemoryReporter>(function, caller);
  if (is_recorded(device)) {
    const KeepErrno keep;
    const HookScope scope;
    recorder::on_torch_memory(
        scope.in_hook(), {Api::reportMemoryUsageToProfiler, reinterpret_cast<std::uint64_t>(block),
                          change, allocated, reserved, entry_of(scope.in_hook(), device)});
  }
  if (real != nullptr && is_forwarded(device, caller))
    real(block, change, allocated, reserved, device);
}

// A failure on the CPU is the heap's, which has already reported it.
[[gnu::always_inline]] inline void report_failure(Function& function, std::int64_t bytes,
                                                  std::uint64_t allocated, std::uint64_t reserved,
                                                  Device device) {
  const void* const caller = __builtin_return_address(0);
  FailureReporter* const real = real_of<FailureReporter>(function, caller);
  if (is_recorded(device) && device.type != kCpu) {
    const KeepErrno keep;
    const HookScope scope;
    recorder::on_torch_failure(scope.in_hook(),
                               {Api::reportOutOfMemoryToProfiler, 0, bytes, allocated, reserved,
                                entry_of(scope.in_hook(), device)});
  }
  if (real != nullptr && is_forwarded(device, caller)) real(bytes, allocated, reserved, device);
}

}  // namespace

void visit_torch(void (*visit)(const char* name, const void* own)) noexcept {
  const LoaderScope loader;
  void* const library = g_next.dlopen(kLibrary, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return;
  for (const Function* const function : kFunctions)
    visit(function->name, real_dlsym()(library, function->name));
  g_next.dlclose(library);
}

std::uint64_t loaded_torch() noexcept {
  static constexpr const char* kAny = "_ZN3c1022memoryProfilingEnabledEv";
  const LoaderScope loader;
  void* const library = g_next.dlopen(kLibrary, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return 0;
  const void* const own = real_dlsym()(library, kAny);
  g_next.dlclose(library);
  return reinterpret_cast<std::uint64_t>(own);
}

void reset_torch_if_closed() noexcept {
  if (!g_resolved.load(std::memory_order_acquire)) return;
  const LoaderScope loader;
  for (Function* const function : kFunctions) {
    Dl_info info;
    void* const real = function->real.load(std::memory_order_relaxed);
    if (real == nullptr || ::dladdr(real, &info) != 0) continue;
    g_resolved.store(false, std::memory_order_release);
    return;
  }
}

}  // namespace oomrec::shim::gpu

#define X(symbol)                                                                  \
  OOMREC_DIRECT_HOOK(void, symbol,                                                 \
                     (void* block, std::int64_t change, std::uint64_t allocated,   \
                      std::uint64_t reserved, oomrec::shim::gpu::Device device)) { \
    using namespace oomrec::shim::gpu;                                             \
    report_memory(g_##symbol, block, change, allocated, reserved, device);         \
  }
OOMREC_MEMORY_REPORTERS(X)
#undef X
#define X(symbol)                                                                          \
  OOMREC_DIRECT_HOOK(void, symbol,                                                         \
                     (std::int64_t bytes, std::uint64_t allocated, std::uint64_t reserved, \
                      oomrec::shim::gpu::Device device)) {                                 \
    using namespace oomrec::shim::gpu;                                                     \
    report_failure(g_##symbol, bytes, allocated, reserved, device);                        \
  }
OOMREC_FAILURE_REPORTERS(X)
#undef X

OOMREC_DIRECT_HOOK(bool, _ZN3c1022memoryProfilingEnabledEv, ()) {
  using namespace oomrec::shim::gpu;
  const bool profiling = is_profiling(__builtin_return_address(0));
  return profiling || (oomrec::recorder::is_active() && oomrec::recorder::wants_torch_on_cpu());
}
