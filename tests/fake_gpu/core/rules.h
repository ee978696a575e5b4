// Failures and delays requested by the environment and by tests.
#pragma once

#include "tests/fake_gpu/core/entry.h"

namespace fake_gpu {

// FAKE_GPU_FAIL: the result of the rules for this call of the function, or success.
int failure_by_rule(const Function& function);

// FAKE_GPU_DELAY_US: sleeps before the function does its work.
void delay(const Function& function);

}  // namespace fake_gpu
