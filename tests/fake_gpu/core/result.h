// Results, as numbered by CUDA and, alike, by HIP.
#pragma once

namespace fake_gpu {

enum Result : int {
  success = 0,
  invalid_value = 1,
  out_of_memory = 2,
  not_initialized = 3,
  no_device = 100,
  invalid_device = 101,
  invalid_context = 201,
  invalid_handle = 400,
  not_found = 500,
  context_is_destroyed = 709,
  already_registered = 712,
  not_registered = 713,
  not_supported = 801,
  capture_unsupported = 900,
  illegal_state = 401,
};

// The text, such as "out of memory"; null if unknown. The front ends derive their names from it.
const char* text_of(int result);

}  // namespace fake_gpu
