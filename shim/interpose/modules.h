// The loaded modules. Takes a lock of the loader: never inside a hook of another function.
#pragma once

#include <link.h>

#include <cstddef>

namespace oomrec::shim {

using VisitModule = int(dl_phdr_info* info, std::size_t bytes, void* data);

// dl_iterate_phdr, looked up by name: an import would let hooks call it, too.
void for_each_module(VisitModule* visit, void* data) noexcept;

}  // namespace oomrec::shim
