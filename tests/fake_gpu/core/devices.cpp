#include "tests/fake_gpu/core/devices.h"

#include <algorithm>
#include <cstdlib>

#include "tests/fake_gpu/core/size.h"
#include "tests/fake_gpu/core/uuid.h"

namespace fake_gpu {
namespace {

struct Devices {
  int count = 0;
  int physical[kMaxDevices] = {};
  std::size_t used[kMaxDevices] = {};
  std::size_t capacity = size_from("FAKE_GPU_BYTES", std::size_t{1} << 30);
  std::size_t used_by_others = size_from("FAKE_GPU_USED_BY_OTHERS", 0);

  Devices() {
    const int present =
        static_cast<int>(std::min(size_from("FAKE_GPU_DEVICES", 2), std::size_t{kMaxDevices}));
    const char* visible = std::getenv(vendor.visible_variable);
    if (visible == nullptr)
      for (; count < present; ++count) physical[count] = count;
    else
      see(visible, present);
  }

  // "1,0"; as documented, the list ends at the first invalid ordinal.
  void see(const char* visible, int present) {
    while (count < kMaxDevices) {
      char* end = nullptr;
      const long ordinal = std::strtol(visible, &end, 10);
      if (end == visible || ordinal < 0 || ordinal >= present) return;
      physical[count++] = static_cast<int>(ordinal);
      if (*end != ',') return;
      visible = end + 1;
    }
  }
};

Devices& devices() {
  static Devices devices;
  return devices;
}

}  // namespace

int device_count() { return devices().count; }
bool is_device(int device) { return device >= 0 && device < device_count(); }
int physical_index(int device) { return devices().physical[device]; }

void copy_uuid(int device, std::uint8_t (&uuid)[16]) {
  fake_uuid(vendor.mark, physical_index(device), uuid);
}

std::size_t capacity(int) { return devices().capacity; }

std::size_t free_bytes(int device) {
  const std::size_t taken = devices().used[device] + devices().used_by_others;
  return devices().capacity - std::min(taken, devices().capacity);
}

bool charge(int device, std::size_t bytes) {
  if (device == kNoDevice) return true;
  if (bytes > free_bytes(device)) return false;
  devices().used[device] += bytes;
  return true;
}

void discharge(int device, std::size_t bytes) {
  if (device != kNoDevice) devices().used[device] -= bytes;
}

}  // namespace fake_gpu
