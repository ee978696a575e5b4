// OOMREC_WRAPPER(name, api, parameters, arguments, action…): expands a row of a driver's table to
// the function that the process sees. Expects in scope: the vendor's types, the actions, `enum
// class Index` of the rows, kVendor, Result, and kNoDriver. The latter is the result if no driver
// is loaded, for programs that refer to a driver's function weakly.
#pragma once

#include <string_view>

#include "shim/gpu/actions.h"
#include "shim/interpose/export.h"

#define OOMREC_WRAPPER(name, base, parameters, arguments, ...)                        \
  OOMREC_DIRECT_HOOK(Result, name, parameters) {                                      \
    constexpr auto row = static_cast<std::size_t>(Index::name);                       \
    const gpu::Calling calling{kVendor, row};                                         \
    void* const next = gpu::driver_of(kVendor).next(row, calling.entry());            \
    if (next == nullptr) return kNoDriver;                                            \
    const auto real = reinterpret_cast<Result(*) parameters>(next);                   \
    return gpu::observe({kVendor, Api::base, gpu::is_per_thread(#name)}, __VA_ARGS__, \
                        [&]() noexcept { return real arguments; });                   \
  }

// A wrapper's address under our own name, because another library may have taken the public one. It
// must be a constant, which a function's address as a void* is not.
#define OOMREC_OWN_NAME(name, ...)                                                        \
  extern "C" [[gnu::visibility("hidden")]] char oomrec_own_##name[];                      \
  asm(".hidden oomrec_own_" #name "\n.globl oomrec_own_" #name "\n.set oomrec_own_" #name \
      ", " #name);

namespace oomrec::shim::gpu {

constexpr bool is_per_thread(std::string_view name) noexcept {
  return name.ends_with("_ptsz") || name.ends_with("_spt");
}

}  // namespace oomrec::shim::gpu
