// The fake libnvidia-ml.so.1: devices and their memory across processes.
//
// FAKE_NVML="0:total=8G,used=3G,pid=123/500M,pid=124;1:total=…" describes the devices. Without it
// they are those of FAKE_GPU_DEVICES and FAKE_GPU_BYTES, with FAKE_GPU_USED_BY_OTHERS used and no
// process. A device that it does not mention keeps these figures.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/fake_gpu/core/size.h"
#include "tests/fake_gpu/core/uuid.h"

namespace fake_gpu {
namespace {

enum NvmlResult : int {
  ok = 0,
  uninitialized = 1,
  invalid_argument = 2,
  too_small = 7,
};

constexpr int kMaxDevices = 16;
constexpr unsigned kMaxProcesses = 32;
constexpr unsigned long long kNotAvailable = ~0ull;  // NVML_VALUE_NOT_AVAILABLE

struct Process {
  unsigned pid;
  unsigned long long bytes;
};

struct Device {
  std::size_t total;
  std::size_t used;
  unsigned processes;
  Process process[kMaxProcesses];
};

struct Machine {
  int devices;
  Device device[kMaxDevices];
};

[[noreturn]] void reject(const char* text) {
  std::fprintf(stderr, "FAKE_NVML: not understood: %s\n", text);
  std::abort();
}

bool skip(const char*& text, const char* word) {
  const std::size_t length = std::strlen(word);
  if (std::strncmp(text, word, length) != 0) return false;
  text += length;
  return true;
}

void read_figure(Device& device, const char*& text) {
  if (skip(text, "total=")) {
    device.total = parse_size(text);
  } else if (skip(text, "used=")) {
    device.used = parse_size(text);
  } else if (skip(text, "pid=") && device.processes < kMaxProcesses) {
    Process& process = device.process[device.processes++];
    process.pid = static_cast<unsigned>(parse_size(text));
    process.bytes = skip(text, "/") ? parse_size(text) : kNotAvailable;
  } else {
    reject(text);
  }
}

Machine look() {
  Machine machine = {};
  machine.devices =
      static_cast<int>(std::min<std::size_t>(size_from("FAKE_GPU_DEVICES", 2), kMaxDevices));
  for (Device& device : machine.device) {
    device.total = size_from("FAKE_GPU_BYTES", std::size_t{1} << 30);
    device.used = size_from("FAKE_GPU_USED_BY_OTHERS", 0);
  }
  const char* text = std::getenv("FAKE_NVML");
  while (text != nullptr && *text != '\0') {
    const std::size_t index = parse_size(text);
    if (index >= kMaxDevices || !skip(text, ":")) reject(text);
    machine.devices = std::max(machine.devices, static_cast<int>(index) + 1);
    do read_figure(machine.device[index], text);
    while (skip(text, ","));
    if (!skip(text, ";") && *text != '\0') reject(text);
  }
  return machine;
}

Machine g_machine = {};
int g_users = 0;  // nvmlInit nests

// A device's handle is its address.
const Device* find(const void* handle) {
  for (int i = 0; i < g_machine.devices; ++i)
    if (handle == &g_machine.device[i]) return &g_machine.device[i];
  return nullptr;
}

int write_text(const char* text, char* out, unsigned bytes) {
  if (out == nullptr) return invalid_argument;
  if (std::strlen(text) >= bytes) return too_small;
  std::strcpy(out, text);
  return ok;
}

// A call on a device: checks that the library is initialized and the handle is a device.
template <class Call>
int on_device(const void* handle, Call call) {
  if (g_users == 0) return uninitialized;
  const Device* const device = find(handle);
  return device == nullptr ? int{invalid_argument} : int{call(*device)};
}

struct Memory {
  unsigned long long total, free, used;
};

struct MemoryV2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};

struct ProcessInfo {
  unsigned pid;
  unsigned long long usedGpuMemory;
  unsigned gpuInstanceId, computeInstanceId;
};

}  // namespace
}  // namespace fake_gpu

using namespace fake_gpu;

#define FAKE_NVML_EXPORT extern "C" __attribute__((visibility("default")))

FAKE_NVML_EXPORT int nvmlInit_v2() {
  if (g_users++ == 0) g_machine = look();
  return ok;
}

FAKE_NVML_EXPORT int nvmlShutdown() {
  if (g_users == 0) return uninitialized;
  --g_users;
  return ok;
}

FAKE_NVML_EXPORT const char* nvmlErrorString(int result) {
  switch (result) {
    case ok:
      return "Success";
    case uninitialized:
      return "Uninitialized";
    case invalid_argument:
      return "Invalid Argument";
    case too_small:
      return "Insufficient Size";
  }
  return "Unknown Error";
}

FAKE_NVML_EXPORT int nvmlDeviceGetCount_v2(unsigned* count) {
  if (g_users == 0) return uninitialized;
  if (count == nullptr) return invalid_argument;
  *count = static_cast<unsigned>(g_machine.devices);
  return ok;
}

FAKE_NVML_EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, const void** handle) {
  if (g_users == 0) return uninitialized;
  if (handle == nullptr || index >= static_cast<unsigned>(g_machine.devices))
    return invalid_argument;
  *handle = &g_machine.device[index];
  return ok;
}

FAKE_NVML_EXPORT int nvmlDeviceGetUUID(const void* handle, char* out, unsigned bytes) {
  return on_device(handle, [=](const Device& device) {
    std::uint8_t uuid[16];
    fake_uuid(kCudaMark, static_cast<int>(&device - g_machine.device), uuid);
    char text[48] = "GPU-";
    char* end = text + 4;
    for (int i = 0; i < 16; ++i) {
      const bool begins_group = i == 4 || i == 6 || i == 8 || i == 10;
      end += std::sprintf(end, begins_group ? "-%02x" : "%02x", uuid[i]);
    }
    return write_text(text, out, bytes);
  });
}

FAKE_NVML_EXPORT int nvmlDeviceGetName(const void* handle, char* out, unsigned bytes) {
  return on_device(handle, [=](const Device&) { return write_text("Fake CUDA GPU", out, bytes); });
}

FAKE_NVML_EXPORT int nvmlDeviceGetMemoryInfo(const void* handle, Memory* out) {
  return on_device(handle, [=](const Device& device) {
    if (out == nullptr) return invalid_argument;
    *out = {device.total, device.total - std::min(device.used, device.total), device.used};
    return ok;
  });
}

FAKE_NVML_EXPORT int nvmlDeviceGetMemoryInfo_v2(const void* handle, MemoryV2* out) {
  constexpr unsigned kVersion = sizeof(MemoryV2) | 2u << 24;
  constexpr int kVersionMismatch = 25;
  if (out != nullptr && out->version != kVersion) return kVersionMismatch;
  return on_device(handle, [=](const Device& device) {
    if (out == nullptr) return invalid_argument;
    *out = {kVersion, device.total, 0, device.total - std::min(device.used, device.total),
            device.used};
    return ok;
  });
}

// *count: capacity of `out`; on return the number of processes.
FAKE_NVML_EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(const void* handle, unsigned* count,
                                                             ProcessInfo* out) {
  constexpr unsigned kNoInstance = ~0u;
  return on_device(handle, [=](const Device& device) {
    if (count == nullptr) return invalid_argument;
    const unsigned room = *count;
    *count = device.processes;
    if (device.processes > room) return too_small;
    for (unsigned i = 0; i < device.processes; ++i)
      out[i] = {device.process[i].pid, device.process[i].bytes, kNoInstance, kNoInstance};
    return ok;
  });
}
