// The devices: capacity and used bytes of each. Touches no memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fake_gpu {

inline constexpr int kMaxDevices = 16;

// What differs between the vendors' fakes; defined by the front end.
struct Vendor {
  const char* device_name;
  std::uint8_t mark;             // part of every UUID
  const char* visible_variable;  // CUDA_VISIBLE_DEVICES: ordinals, in the order wanted
  bool implicit_contexts;        // a thread has a current device and needs no cuInit
};
extern const Vendor vendor;

// Devices by the ordinals that the program sees.
int device_count();
bool is_device(int device);

// Of the physical device: a device has the same UUID under any ordinal.
void copy_uuid(int device, std::uint8_t (&uuid)[16]);
int physical_index(int device);

std::size_t capacity(int device);
std::size_t free_bytes(int device);  // without FAKE_GPU_USED_BY_OTHERS

// Takes memory of the device; false: not enough is left. kNoDevice: host memory, which is
// unlimited.
inline constexpr int kNoDevice = -1;
bool charge(int device, std::size_t bytes);
void discharge(int device, std::size_t bytes);

}  // namespace fake_gpu
