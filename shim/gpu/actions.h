// The meaning of a driver's calls: one action for each row of the tables (call.h lists what an
// action may define). CUDA and HIP share them. Any pointer from the program may be NULL.
#pragma once

#include "shim/gpu/actions/contexts.h"
#include "shim/gpu/actions/graphs.h"
#include "shim/gpu/actions/handles.h"
#include "shim/gpu/actions/memory.h"
#include "shim/gpu/actions/ordered.h"
