// Look-ups of a driver's functions by name: dlsym, and the drivers' own resolvers.
#pragma once

namespace oomrec::shim::gpu {

using Dlsym = void* (*)(void* library, const char* name);

// The loader's, which finds RTLD_NEXT by who calls it: for us, what comes after us.
Dlsym real_dlsym() noexcept;

}  // namespace oomrec::shim::gpu
