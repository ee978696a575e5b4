// What the environment and the tests ask for: failures, delays, figures.
#pragma once

#include <cstddef>

#include "tests/fake_gpu/core/entry.h"

namespace fake_gpu {

// FAKE_GPU_FAIL: the result that the rules give to this call of the function, or success.
int refusal_by_rule(const Function& function);

// FAKE_GPU_DELAY_US: sleeps before the function does its work.
void delay(const Function& function);

// A size, plain or with K, M or G, from a variable; `otherwise` where it is not set.
std::size_t size_from(const char* variable, std::size_t otherwise);
std::size_t parse_size(const char*& text);

}  // namespace fake_gpu
