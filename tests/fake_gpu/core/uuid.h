// The UUID of a fake device: the same in the driver's fake and in NVML's, in every process.
#pragma once

#include <cstdint>
#include <cstring>

namespace fake_gpu {

inline void fake_uuid(std::uint8_t mark, int physical_index, std::uint8_t (&uuid)[16]) {
  constexpr std::uint8_t kUuid[16] = {0xfa, 0x4e, 0,    0x01, 0x9d, 0x3c, 0x4b, 0x71,
                                      0x8e, 0x25, 0x6f, 0xd0, 0x13, 0xa7, 0x58, 0};
  std::memcpy(uuid, kUuid, sizeof uuid);
  uuid[2] = mark;
  uuid[15] = static_cast<std::uint8_t>(physical_index);
}

inline constexpr std::uint8_t kCudaMark = 0xcd;
inline constexpr std::uint8_t kHipMark = 0xa3;

}  // namespace fake_gpu
