// How `oomrec simulate` ends its own process. A function returns only if that does not succeed.
#pragma once

namespace oomrec::tools::processes {

// After a failed allocation.
void use_null();
void leave_bad_alloc_uncaught();
void abort_after_failure();

// Without one.
void use_wild_pointer();
void be_killed();            // SIGKILL
void be_terminated();        // SIGTERM
void be_killed_in_cgroup();  // SIGKILL, as if by the kernel; needs a scenario
void be_killed_by_machine();
void fill_shared_memory();

// Returns when a worker has died as in be_killed_in_cgroup().
void lose_a_worker();

// Returns: the process runs near its limit for half a second.
void stay_near_limit();

// Failed allocations of GPU memory, for `oomrec simulate`.
//
// They need no GPU and use none: the process loads a driver of a device that does not exist, and
// calls it as a program calls a real one.

// Allocates until the device or --limit-gpu refuses.
void fill_device();

// Frees every other block of a pool, and requests more than one of them.
void fragment_device();

}  // namespace oomrec::tools::processes
