// The loader's dlsym; the process sees ours instead (gpu/lookup.cpp).
#pragma once

namespace oomrec::shim {

using Dlsym = void* (*)(void* library, const char* name);

// It resolves RTLD_NEXT relative to its caller: for us, the libraries after ours.
Dlsym real_dlsym() noexcept;

}  // namespace oomrec::shim
