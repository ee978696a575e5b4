// dlopen in a program that was attached to.
#pragma once

namespace oomrec::shim {

// Adds its redirection. `next`: the loader's.
void redirect_dlopen(const void* next) noexcept;

}  // namespace oomrec::shim
