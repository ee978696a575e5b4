// The fake libcuda.so.1: the driver's functions, as thin rows above the core.
#include "shim/gpu/cuda_functions.h"

#include <cctype>
#include <cstdio>

#include "tests/fake_gpu/core/both_rows.h"
#include "tests/fake_gpu/core/uuid.h"
#include "tests/fake_gpu/cuda/context_rows.h"
#include "tests/fake_gpu/cuda/memory_rows.h"
#include "tests/fake_gpu/cuda/stream_rows.h"
#include "tests/fake_gpu/cuda/translate.h"

// Functions without effect have parameters, too.
#pragma GCC diagnostic ignored "-Wunused-parameter"

namespace fake_gpu {

const Vendor vendor = {"Fake CUDA GPU", kCudaMark, "CUDA_VISIBLE_DEVICES", false};

// Forms for the per-thread default stream exist since CUDA 7, or since the function exists.
#define FAKE_CUDA_PTSZ(X, name, since, ...) \
  X(name, since, __VA_ARGS__) X(name##_ptsz, (since < 7000 ? 7000 : since), __VA_ARGS__)
#define FAKE_CUDA_PTDS(X, name, since, ...) \
  X(name, since, __VA_ARGS__) X(name##_ptds, (since < 7000 ? 7000 : since), __VA_ARGS__)

#define FAKE_CUDA_ROWS(X) \
  FAKE_BOTH_ROWS(X) FAKE_CUDA_CONTEXT_ROWS(X) FAKE_CUDA_STREAM_ROWS(X) FAKE_CUDA_MEMORY_ROWS(X)

FAKE_GPU_FRONT_END(FAKE_CUDA_ROWS)

// Everything that the library wraps exists here, with the same parameters.
#define FAKE_CUDA_CHECK(name, api, parameters, ...) \
  static_assert(static_cast<CUresult(*) parameters>(&name) != nullptr, #name);
OOMREC_CUDA_FUNCTIONS(FAKE_CUDA_CHECK)
#undef FAKE_CUDA_CHECK

int allocate_managed_memory(CUdeviceptr* out, std::size_t bytes) {
  static const bool calls_itself = std::getenv("FAKE_GPU_CALLS_ITSELF") != nullptr;
  if (!calls_itself) return allocate_managed(out, bytes);
  const Outside outside;
  return cuMemAlloc_v2(out, bytes);
}

int error_text(int error, const char** text) {
  if (text == nullptr || text_of(error) == nullptr) return invalid_value;
  *text = text_of(error);
  return success;
}

// "out of memory" is CUDA_ERROR_OUT_OF_MEMORY. Valid until the thread asks again.
int error_name(int error, const char** name) {
  static thread_local char t_name[64];
  const char* text = nullptr;
  if (name == nullptr || error_text(error, &text) != success) return invalid_value;
  char* end = t_name + std::sprintf(t_name, error == success ? "CUDA_" : "CUDA_ERROR_");
  do *end++ = *text == ' ' ? '_' : static_cast<char>(std::toupper(*text));
  while (*text++ != '\0');
  *name = t_name;
  return success;
}

// CU_DEVICE_ATTRIBUTE_*, as far as programs that allocate and copy ask for them.
int attribute_value(int attribute, int device) {
  switch (attribute) {
    case 1:
      return 1024;  // threads of a block
    case 2:
    case 3:
      return 1024;  // x and y of a block
    case 4:
      return 64;  // z
    case 5:
      return 1 << 30;  // x of a grid
    case 6:
    case 7:
      return 65535;
    case 8:
      return 48 << 10;  // shared memory of a block
    case 10:
      return 32;  // threads of a warp
    case 16:
      return 8;  // multiprocessors
    case 33:
      return physical_index(device) + 1;  // PCI bus, as in pci_bus_id
    case 75:
      return kMajor;
    case 76:
      return kMinor;
    // Host memory can be mapped; unified addressing; managed memory; virtual memory; descriptors
    // as shareable handles; memory pools; multicast.
    case 19:
    case 41:
    case 83:
    case 102:
    case 103:
    case 115:
    case 132:
      return 1;
  }
  return 0;
}

}  // namespace fake_gpu
