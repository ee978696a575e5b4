// The filter behind the exported dlsym (common/machine, dlsym.S): decides which lookups get our
// wrapper.
//
// Only names of the tables matter, which start with cu or hip and an upper-case letter (cublas,
// cudnn, curl pass unchanged). A lookup in the handle of a library does not depend on the caller:
// it is done here, and its result is wrapped. The others (RTLD_DEFAULT, RTLD_NEXT, the handle of
// the whole program) may find our own definitions. The program must not get those if it would have
// found nothing without us; then the next dlsym answers, entered by a jump.
#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <initializer_list>

#include "recorder/devices/registry.h"
#include "recorder/recorder.h"
#include "shim/gpu/driver.h"
#include "shim/interpose/loader.h"
#include "shim/interpose/next.h"

extern "C" {
// The dlsym that the program would have called without us: the loader's, or another preloaded
// library's.
__attribute__((visibility("hidden"))) std::atomic<oomrec::shim::Dlsym> oomrec_next_dlsym;

// `answered` 0: the next dlsym must answer, entered by a jump.
struct DlsymAnswer {
  void* address;
  unsigned long answered;
};
__attribute__((visibility("hidden"))) DlsymAnswer oomrec_dlsym_filter(void* library,
                                                                      const char* name,
                                                                      const void* caller);
}

namespace oomrec::shim::gpu {
namespace {

static_assert(sizeof oomrec_next_dlsym == sizeof(Dlsym), "the jump reads it");
constexpr DlsymAnswer kPassOn{nullptr, 0};

bool is_upper(char letter) noexcept { return letter >= 'A' && letter <= 'Z'; }

Driver* driver_of_name(const char* name) noexcept {
  if (name == nullptr) return nullptr;
  if (name[0] == 'c' && name[1] == 'u' && is_upper(name[2])) return &g_cuda;
  if (name[0] == 'h' && name[1] == 'i' && name[2] == 'p' && is_upper(name[3])) return &g_hip;
  return nullptr;
}

// The first call may come before our constructor.
Dlsym next_dlsym() noexcept {
  Dlsym next = oomrec_next_dlsym.load(std::memory_order_relaxed);
  if (next == nullptr) {
    next = reinterpret_cast<Dlsym>(real_dlsym()(RTLD_NEXT, "dlsym"));
    if (next == nullptr) next = real_dlsym();  // only our own code can call it: there is no libdl
    oomrec_next_dlsym.store(next, std::memory_order_relaxed);
  }
  return next;
}

const link_map* library_at(const void* address) noexcept {
  Dl_info info;
  link_map* library = nullptr;
  const bool known =
      ::dladdr1(address, &info, reinterpret_cast<void**>(&library), RTLD_DL_LINKMAP) != 0;
  return known ? library : nullptr;
}

// In the search order of the program's libraries.
bool comes_before(const link_map* one, const link_map* other) noexcept {
  if (one == nullptr || other == nullptr) return false;
  for (const link_map* at = other->l_prev; at != nullptr; at = at->l_prev)
    if (at == one) return true;
  return false;
}

class Lookup {
 public:
  Lookup(Driver& driver, Function& function, const void* caller) noexcept
      : driver_(driver), function_(function), caller_(caller) {}

  DlsymAnswer by_handle(void* library) const noexcept {
    void* const found = next_dlsym()(library, function_.name);
    if (found == nullptr) return kPassOn;  // it fails again there, for dlerror
    return found == function_.wrapper ? answer(next_after_us()) : answer(found);
  }

  // A library that was opened with RTLD_LOCAL also sees its own dependencies.
  DlsymAnswer by_default() const noexcept {
    if (real_dlsym()(RTLD_DEFAULT, function_.name) != function_.wrapper) return kPassOn;
    if (void* const found = next_after_us()) return answer(found);
    if (void* const found = beside_caller()) return answer(found);
    return answer(next_after_us());
  }

  // A caller before us would find us after a jump; others would not.
  DlsymAnswer by_next() const noexcept {
    const link_map* const caller = library_at(caller_);
    const link_map* const first = library_at(real_dlsym()(RTLD_DEFAULT, function_.name));
    const link_map* const ours = library_at(function_.wrapper);
    const bool another_is_first = first != ours && comes_before(caller, first);
    if (another_is_first || !comes_before(caller, ours)) return kPassOn;
    return answer(next_after_us());
  }

 private:
  // The definition after ours; nullptr, with dlerror set: none.
  void* next_after_us() const noexcept { return real_dlsym()(RTLD_NEXT, function_.name); }

  void* beside_caller() const noexcept {
    const link_map* const caller = library_at(caller_);
    const LoaderScope loader;
    void* const library = caller != nullptr && *caller->l_name != '\0'
                              ? g_next.dlopen(caller->l_name, RTLD_LAZY | RTLD_NOLOAD)
                              : nullptr;
    if (library == nullptr) return nullptr;
    void* const found = real_dlsym()(library, function_.name);
    g_next.dlclose(library);
    return found;
  }

  DlsymAnswer answer(void* found) const noexcept {
    if (found == nullptr || !recorder::is_active()) return {found, 1};
    return {driver_.wrapper_for(found, &function_, LookUp::dlsym), 1};
  }

  Driver& driver_;
  Function& function_;
  const void* const caller_;
};

}  // namespace

}  // namespace oomrec::shim::gpu

DlsymAnswer oomrec_dlsym_filter(void* library, const char* name, const void* caller) {
  using namespace oomrec::shim::gpu;
  next_dlsym();
  if (BeforeLookup* const before = g_before_lookup.load(std::memory_order_relaxed)) [[unlikely]]
    before(library);
  Driver* const driver = driver_of_name(name);
  Function* const function = driver != nullptr ? driver->function(name) : nullptr;
  if (function == nullptr) return kPassOn;
  const Lookup look_up{*driver, *function, caller};
  if (library == RTLD_NEXT) return look_up.by_next();
  if (library == RTLD_DEFAULT) return look_up.by_default();
  return look_up.by_handle(library);
}
