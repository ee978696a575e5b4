// The loader's dlsym: the process sees one of ours (gpu/lookup.cpp).
#pragma once

namespace oomrec::shim {

using Dlsym = void* (*)(void* library, const char* name);

// It finds RTLD_NEXT by who calls it: for us, what comes after us.
Dlsym real_dlsym() noexcept;

}  // namespace oomrec::shim
