// Runs work that needs more stack than a small `ulimit -s` allows, such as symbolizing.
#pragma once

#include <functional>

namespace oomrec::tools {

// Runs `work` on this thread if its stack may grow to 8 MiB or if no thread can be created, else on
// a thread with 8 MiB. Exceptions propagate.
void on_large_stack(const std::function<void()>& work);

}  // namespace oomrec::tools
