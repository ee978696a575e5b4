#include "tests/fake_gpu/core/result.h"

namespace fake_gpu {

const char* name_of(int result) {
  switch (result) {
    case success:
      return "SUCCESS";
    case invalid_value:
      return "INVALID_VALUE";
    case out_of_memory:
      return "OUT_OF_MEMORY";
    case not_initialized:
      return "NOT_INITIALIZED";
    case no_device:
      return "NO_DEVICE";
    case invalid_device:
      return "INVALID_DEVICE";
    case invalid_context:
      return "INVALID_CONTEXT";
    case invalid_handle:
      return "INVALID_HANDLE";
    case not_found:
      return "NOT_FOUND";
    case context_is_destroyed:
      return "CONTEXT_IS_DESTROYED";
    case already_registered:
      return "HOST_MEMORY_ALREADY_REGISTERED";
    case not_registered:
      return "HOST_MEMORY_NOT_REGISTERED";
    case not_supported:
      return "NOT_SUPPORTED";
    case capture_unsupported:
      return "STREAM_CAPTURE_UNSUPPORTED";
    case illegal_state:
      return "ILLEGAL_STATE";
  }
  return nullptr;
}

}  // namespace fake_gpu
