// What the hook of dlsym does before a lookup.
#pragma once

namespace oomrec::shim::gpu {

// Called first by each lookup of the program, which enters the loader anyway; may be nullptr.
using BeforeLookup = void() noexcept;
inline constinit BeforeLookup* g_before_lookup = nullptr;

}  // namespace oomrec::shim::gpu
