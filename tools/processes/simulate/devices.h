// Failed allocations of GPU memory, for `oomrec simulate`.
//
// They need no GPU and use none: the process loads a driver of a device that does not exist, and
// calls it as a program calls a real one.
#pragma once

namespace oomrec::tools::processes {

// Allocates until the device or --limit-gpu refuses.
void fill_device();

// Frees every other block of a pool, and requests more than one of them.
void fragment_device();

}  // namespace oomrec::tools::processes
