#include "tests/fake_gpu/core/result.h"

namespace fake_gpu {

const char* text_of(int result) {
  switch (result) {
    case success:
      return "success";
    case invalid_value:
      return "invalid value";
    case out_of_memory:
      return "out of memory";
    case not_initialized:
      return "not initialized";
    case no_device:
      return "no device";
    case invalid_device:
      return "invalid device";
    case invalid_context:
      return "invalid context";
    case invalid_handle:
      return "invalid handle";
    case not_found:
      return "not found";
    case context_is_destroyed:
      return "context is destroyed";
    case already_registered:
      return "host memory already registered";
    case not_registered:
      return "host memory not registered";
    case not_supported:
      return "not supported";
    case capture_unsupported:
      return "stream capture unsupported";
    case illegal_state:
      return "illegal state";
  }
  return nullptr;
}

}  // namespace fake_gpu
