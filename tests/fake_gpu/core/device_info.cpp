#include "tests/fake_gpu/core/device_info.h"

#include <cstdio>
#include <cstring>

#include "tests/fake_gpu/core/result.h"

namespace fake_gpu {

int device_name(char* name, int size, int device) {
  if (!is_device(device)) return invalid_device;
  if (name == nullptr || size <= 0) return invalid_value;
  std::snprintf(name, static_cast<std::size_t>(size), "%s", vendor.device_name);
  return success;
}

int device_uuid(void* out, int device) {
  if (!is_device(device)) return invalid_device;
  if (out == nullptr) return invalid_value;
  std::uint8_t uuid[16];
  copy_uuid(device, uuid);
  std::memcpy(out, uuid, sizeof uuid);
  return success;
}

int compute_capability(int* major, int* minor, int device) {
  if (!is_device(device)) return invalid_device;
  if (major == nullptr || minor == nullptr) return invalid_value;
  *major = kMajor;
  *minor = kMinor;
  return success;
}

int pci_bus_id(char* text, int size, int device) {
  if (!is_device(device)) return invalid_device;
  if (text == nullptr || size < 13) return invalid_value;
  std::snprintf(text, static_cast<std::size_t>(size), "0000:%02x:00.0", physical_index(device) + 1);
  return success;
}

int device_of_pci_bus_id(int* out, const char* text) {
  if (out == nullptr || text == nullptr) return invalid_value;
  char own[16];
  for (int device = 0; device < device_count(); ++device) {
    pci_bus_id(own, sizeof own, device);
    if (std::strcmp(own, text) != 0) continue;
    *out = device;
    return success;
  }
  return invalid_value;
}

}  // namespace fake_gpu
