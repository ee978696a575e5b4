// What the calls of a driver mean: one action for each row of the tables (call.h says what an
// action may have). CUDA and HIP have the same ones. Any pointer a program passes may be NULL.
#pragma once

#include "shim/gpu/actions/contexts.h"
#include "shim/gpu/actions/graphs.h"
#include "shim/gpu/actions/handles.h"
#include "shim/gpu/actions/memory.h"
#include "shim/gpu/actions/ordered.h"
