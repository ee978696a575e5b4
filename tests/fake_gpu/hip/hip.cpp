// The fake libamdhip64.so: the runtime's functions, as thin rows above the core.
#include "shim/gpu/hip_functions.h"

#include <cctype>
#include <cstdio>

#include "tests/fake_gpu/core/both_rows.h"
#include "tests/fake_gpu/core/uuid.h"
#include "tests/fake_gpu/hip/device_rows.h"
#include "tests/fake_gpu/hip/memory_rows.h"
#include "tests/fake_gpu/hip/translate.h"

// Functions without effect have parameters, too.
#pragma GCC diagnostic ignored "-Wunused-parameter"

namespace fake_gpu {

const Vendor vendor = {"Fake HIP GPU", kHipMark, "HIP_VISIBLE_DEVICES", true};

#define FAKE_HIP_ROWS(X) FAKE_BOTH_ROWS(X) FAKE_HIP_DEVICE_ROWS(X) FAKE_HIP_MEMORY_ROWS(X)

FAKE_GPU_FRONT_END(FAKE_HIP_ROWS)

// Everything that the library wraps exists here, with the same parameters.
#define FAKE_HIP_CHECK(name, api, parameters, ...) \
  static_assert(static_cast<hipError_t(*) parameters>(&name) != nullptr, #name);
OOMREC_HIP_FUNCTIONS(FAKE_HIP_CHECK)
#undef FAKE_HIP_CHECK

int allocate_managed_memory(void** out, std::size_t bytes) {
  static const bool calls_itself = std::getenv("FAKE_GPU_CALLS_ITSELF") != nullptr;
  if (!calls_itself) return allocate_managed(address_out(out), bytes);
  const Outside outside;
  return hipMalloc(out, bytes);
}

}  // namespace fake_gpu

#define FAKE_HIP_EXPORT extern "C" __attribute__((visibility("default")))

FAKE_HIP_EXPORT const char* hipGetErrorString(int error) {
  const char* const text = fake_gpu::text_of(error);
  return text == nullptr ? "unknown error" : text;
}

// "out of memory" is hipErrorOutOfMemory. Valid until the thread asks again.
FAKE_HIP_EXPORT const char* hipGetErrorName(int error) {
  static thread_local char t_name[64];
  char* end = t_name + std::sprintf(t_name, error == fake_gpu::success ? "hip" : "hipError");
  bool capital = true;
  for (const char* text = hipGetErrorString(error); *text != '\0'; ++text) {
    if (*text != ' ') *end++ = static_cast<char>(capital ? std::toupper(*text) : *text);
    capital = *text == ' ';
  }
  *end = '\0';
  return t_name;
}

FAKE_HIP_EXPORT int hipPeekAtLastError() { return fake_gpu::last_failure(); }

FAKE_HIP_EXPORT int hipGetLastError() {
  const int failure = fake_gpu::last_failure();
  fake_gpu::forget_failure();
  return failure;
}
