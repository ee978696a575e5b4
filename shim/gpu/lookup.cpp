// The filter behind the exported dlsym (dlsym.S): which look-ups get a wrapper of ours.
//
// Only names that look like a driver's are looked at: cu or hip and an upper-case letter (cublas,
// cudnn, curl pass untouched). What depends on who calls is left to the loader, which is entered by
// a jump: RTLD_NEXT always, RTLD_DEFAULT where a driver is loaded. Where none is, the program would
// find our definition by RTLD_DEFAULT, or in the handle of the whole program, and must not.
#include "shim/gpu/lookup.h"

#include <dlfcn.h>

#include <initializer_list>

#include "shim/gpu/driver.h"

namespace oomrec::shim::gpu {
namespace {

bool is_upper(char letter) noexcept { return letter >= 'A' && letter <= 'Z'; }

Driver* driver_of_name(const char* name) noexcept {
  if (name == nullptr) return nullptr;
  if (name[0] == 'c' && name[1] == 'u' && is_upper(name[2])) return &g_cuda;
  if (name[0] == 'h' && name[1] == 'i' && name[2] == 'p' && is_upper(name[3])) return &g_hip;
  return nullptr;
}

}  // namespace
}  // namespace oomrec::shim::gpu

extern "C" {
__attribute__((visibility("hidden"))) oomrec::shim::gpu::Dlsym oomrec_real_dlsym;

// `answered` 0: the real function shall answer, entered by a jump.
struct DlsymAnswer {
  void* address;
  unsigned long answered;
};
__attribute__((visibility("hidden"))) DlsymAnswer oomrec_dlsym_filter(void* library,
                                                                      const char* name);
}

namespace oomrec::shim::gpu {

Dlsym real_dlsym() noexcept {
  // The first call may come before our constructor.
  for (const char* const version : {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"}) {
    if (oomrec_real_dlsym != nullptr) break;
    oomrec_real_dlsym = reinterpret_cast<Dlsym>(::dlvsym(RTLD_NEXT, "dlsym", version));
  }
  return oomrec_real_dlsym;
}

}  // namespace oomrec::shim::gpu

DlsymAnswer oomrec_dlsym_filter(void* library, const char* name) {
  using namespace oomrec::shim::gpu;
  const Dlsym real = real_dlsym();
  constexpr DlsymAnswer kNotOurs{nullptr, 0};
  Driver* const driver = driver_of_name(name);
  if (driver == nullptr || library == RTLD_NEXT || !oomrec::recorder::is_active()) return kNotOurs;
  Function* const function = driver->function(name);
  if (function == nullptr) return kNotOurs;
  const bool loaded = driver->find();
  if (library == RTLD_DEFAULT) {
    if (loaded) return kNotOurs;
    return {driver->given_for(real(RTLD_NEXT, name), function, LookUp::dlsym), 1};
  }
  void* const address = real(library, name);
  if (address == nullptr) return kNotOurs;  // again, for dlerror
  if (address == function->wrapper && !loaded) return {real(RTLD_NEXT, name), 1};
  if (address == function->wrapper) return {address, 1};
  return {driver->given_for(address, function, LookUp::dlsym), 1};
}
