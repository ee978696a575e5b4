// Room for work that needs more stack than a small `ulimit -s` leaves: symbolizing, above all.
#pragma once

#include <functional>

namespace oomrec::tools {

// Runs `work` here where the stack may grow to 8 MiB, else on a thread with as much; what it throws
// is thrown on. Where no such thread can be had it is run here all the same.
void on_large_stack(const std::function<void()>& work);

}  // namespace oomrec::tools
