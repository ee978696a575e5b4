// What the hook of dlsym does before a lookup.
#pragma once

#include <atomic>

namespace oomrec::shim::gpu {

// Called first by each lookup of the program, which enters the loader anyway, with the handle that
// the program passes; may be nullptr.
using BeforeLookup = void(void* library) noexcept;
inline constinit std::atomic<BeforeLookup*> g_before_lookup{nullptr};

}  // namespace oomrec::shim::gpu
