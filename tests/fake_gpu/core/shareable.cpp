#include "tests/fake_gpu/core/shareable.h"

#include <cstdint>
#include <cstring>

#include "tests/fake_gpu/core/raw_memory.h"
#include "tests/fake_gpu/core/result.h"

namespace fake_gpu {

int export_shareable(void* out, const Shareable& shareable) {
  static const char kName[] = "fake_gpu";
  constexpr long kCloseOnExec = 1;  // MFD_CLOEXEC
  const int descriptor =
      static_cast<int>(raw_call(SYS_memfd_create, reinterpret_cast<long>(kName), kCloseOnExec));
  if (descriptor < 0) return out_of_memory;
  raw_call(SYS_pwrite64, descriptor, reinterpret_cast<long>(&shareable), sizeof shareable, 0);
  std::memcpy(out, &descriptor, sizeof descriptor);
  return success;
}

bool import_shareable(const void* handle, Shareable* shareable) {
  const auto descriptor = static_cast<int>(reinterpret_cast<std::intptr_t>(handle));
  return raw_call(SYS_pread64, descriptor, reinterpret_cast<long>(shareable), sizeof *shareable,
                  0) == sizeof *shareable;
}

}  // namespace fake_gpu
