// The devices: how much memory each has and how much of it is taken. Touches none.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fake_gpu {

inline constexpr int kMaxDevices = 16;

// What tells one vendor's fake from another's; defined by the front end.
struct Vendor {
  const char* device_name;
  std::uint8_t mark;             // in every UUID
  const char* visible_variable;  // CUDA_VISIBLE_DEVICES: ordinals, in the order wanted
  bool implicit_contexts;        // a thread has a current device and no need of cuInit
};
extern const Vendor vendor;

// Devices by the ordinals that the program sees.
int device_count();
bool is_device(int device);

// Of the physical device: the same device has the same UUID whatever its ordinal is.
void copy_uuid(int device, std::uint8_t (&uuid)[16]);
int physical_index(int device);

std::size_t capacity(int device);
std::size_t free_bytes(int device);  // less what FAKE_GPU_USED_BY_OTHERS takes

// Takes memory of the device; false: it has not so much left. device kNoDevice: host memory, free.
inline constexpr int kNoDevice = -1;
bool charge(int device, std::size_t bytes);
void discharge(int device, std::size_t bytes);

}  // namespace fake_gpu
