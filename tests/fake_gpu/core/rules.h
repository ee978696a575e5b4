// What the environment and the tests ask for: failures and delays.
#pragma once

#include "tests/fake_gpu/core/entry.h"

namespace fake_gpu {

// FAKE_GPU_FAIL: the result that the rules give to this call of the function, or success.
int refusal_by_rule(const Function& function);

// FAKE_GPU_DELAY_US: sleeps before the function does its work.
void delay(const Function& function);

}  // namespace fake_gpu
