// Refusals of a GPU's memory, each in a few lines: what `oomrec simulate` does to itself.
//
// No machine's GPU is needed or touched: the process loads a driver of its own, of a device that
// does not exist, and calls it as a program calls a true one.
#pragma once

namespace oomrec::tools::processes {

// Until it is refused: by the device, or by --limit-gpu.
void fill_device();

// Frees every other block of a pool, and asks for more than one of them.
void fragment_device();

}  // namespace oomrec::tools::processes
