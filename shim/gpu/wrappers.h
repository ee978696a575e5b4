// OOMREC_WRAPPER(name, api, parameters, arguments, action): a row of a driver's table as a function
// that the process sees. Expects in scope: the vendor's types, the actions, `enum class Index` of
// the rows, kVendor, Result, and kNoDriver, the answer where no driver is loaded (a program gets it
// that refers to a driver's function weakly).
#pragma once

#include <string_view>

#include "shim/gpu/actions.h"
#include "shim/interpose/export.h"

#define OOMREC_WRAPPER(name, base, parameters, arguments, action)                \
  OOMREC_HOOK(Result, name, parameters) {                                        \
    constexpr auto row = static_cast<std::size_t>(Index::name);                  \
    const gpu::Calling calling{kVendor, row};                                    \
    void* const next = gpu::driver_of(kVendor).next(row, calling.again());       \
    if (next == nullptr) return kNoDriver;                                       \
    const auto real = reinterpret_cast<Result(*) parameters>(next);              \
    return gpu::observe({kVendor, Api::base, gpu::is_per_thread(#name)}, action, \
                        [&]() noexcept { return real arguments; });              \
  }

// A wrapper's address under a name of our own (another library may have taken the public one), as a
// constant: the address of a function is none as a void*.
#define OOMREC_OWN_NAME(name, ...)                                                        \
  extern "C" [[gnu::visibility("hidden")]] char oomrec_own_##name[];                      \
  asm(".hidden oomrec_own_" #name "\n.globl oomrec_own_" #name "\n.set oomrec_own_" #name \
      ", " #name);

namespace oomrec::shim::gpu {

constexpr bool is_per_thread(std::string_view name) noexcept {
  return name.ends_with("_ptsz") || name.ends_with("_spt");
}

}  // namespace oomrec::shim::gpu
