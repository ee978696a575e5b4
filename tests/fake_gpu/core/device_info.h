// Properties of a device.
#pragma once

#include "tests/fake_gpu/core/devices.h"

namespace fake_gpu {

int device_name(char* name, int size, int device);
int device_uuid(void* uuid, int device);  // 16 bytes
int compute_capability(int* major, int* minor, int device);
int pci_bus_id(char* text, int size, int device);
int device_of_pci_bus_id(int* device, const char* text);

inline constexpr int kMajor = 9;
inline constexpr int kMinor = 0;

}  // namespace fake_gpu
