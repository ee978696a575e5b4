#include "shim/gpu/driver.h"

#include <dlfcn.h>
#include <string.h>

#include "recorder/hook_scope.h"
#include "shim/gpu/lookup.h"
#include "shim/next.h"

namespace oomrec::shim::gpu {
namespace {

// What we ask of the loader leaves no trace in the program: errno, dlerror, --fail.
class AskLoader {
 public:
  AskLoader() noexcept { recorder::pause_injection(true); }
  ~AskLoader() {
    recorder::pause_injection(false);
    g_next.dlerror();
  }
  AskLoader(const AskLoader&) = delete;
  AskLoader& operator=(const AskLoader&) = delete;

 private:
  const KeepErrno keep_;
};

void* symbol(void* library, const char* name) noexcept { return real_dlsym()(library, name); }

}  // namespace

void* Driver::open() const noexcept {
  for (const char* const name : libraries_) {
    void* const library = ::dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
    if (library != nullptr) return library;
  }
  return nullptr;
}

bool Driver::find() noexcept {
  if (found_.load(std::memory_order_acquire)) return true;
  const AskLoader asking;
  void* const library = open();
  if (library == nullptr) return false;
  adopt(library);
  g_next.dlclose(library);
  return true;
}

// Threads may do this side by side: all find the same.
void Driver::adopt(void* library) noexcept {
  std::uint32_t wrapped = 0;
  for (Function& function : functions_) {
    void* const own = symbol(library, function.name);
    if (own == nullptr) continue;
    void* const after_us = symbol(RTLD_NEXT, function.name);
    function.own.store(own, std::memory_order_relaxed);
    function.next.store(after_us != nullptr ? after_us : own, std::memory_order_release);
    ++wrapped;
  }
  for (const Query& query : queries_)
    query.to->store(symbol(library, query.name), std::memory_order_release);
  found_.store(true, std::memory_order_release);

  Dl_info info;
  void* const any = functions_[0].own.load(std::memory_order_relaxed);
  const char* const path =
      any != nullptr && ::dladdr(any, &info) != 0 ? info.dli_fname : libraries_[0];
  const HookScope scope;
  if (scope.outermost()) recorder::describe_driver(scope.in_hook(), vendor_, path, 0, wrapped);
}

void* Driver::find_next(std::size_t index) noexcept {
  Function& function = functions_[index];
  if (!find()) return nullptr;
  void* const next = function.next.load(std::memory_order_acquire);
  if (next != nullptr && !function.looked_up.exchange(true, std::memory_order_relaxed))
    tell(function, LookUp::linked);
  return next;
}

void Driver::tell(Function&, LookUp way) noexcept {
  const HookScope scope;
  if (scope.outermost()) recorder::on_look_up(scope.in_hook(), vendor_, way);
}

Function* Driver::function(const char* name) noexcept {
  for (Function& function : functions_)
    if (::strcmp(function.name, name) == 0) return &function;
  return nullptr;
}

Function* Driver::function_at(void* address) noexcept {
  for (Function& function : functions_) {
    if (function.own.load(std::memory_order_relaxed) == address ||
        function.next.load(std::memory_order_relaxed) == address)
      return &function;
  }
  return nullptr;
}

void* Driver::given_for(void* address, Function* named, LookUp way) noexcept {
  if (address == nullptr) return nullptr;
  Function* known = find() ? function_at(address) : nullptr;
  if (known == nullptr && named != nullptr &&
      named->next.load(std::memory_order_relaxed) == nullptr) {
    // A driver that goes by another name: it is known by what the program was given.
    void* none = nullptr;
    named->next.compare_exchange_strong(none, address, std::memory_order_acq_rel);
    Dl_info info;
    const AskLoader asking;
    if (::dladdr(address, &info) != 0) {
      if (void* const library = ::dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD)) {
        adopt(library);
        g_next.dlclose(library);
      }
    }
    known = named;
  }
  if (known == nullptr) return address;
  if (!known->looked_up.exchange(true, std::memory_order_relaxed)) tell(*known, way);
  return known->wrapper;
}

void Driver::forget_if_closed() noexcept {
  if (!found_.load(std::memory_order_acquire)) return;
  const AskLoader asking;
  if (void* const library = open()) {
    g_next.dlclose(library);
    return;
  }
  Dl_info info;
  void* const any = functions_[0].own.load(std::memory_order_relaxed);
  if (any != nullptr && ::dladdr(any, &info) != 0) return;  // it goes by another name
  found_.store(false, std::memory_order_relaxed);
  for (const Query& query : queries_) query.to->store(nullptr, std::memory_order_relaxed);
  for (Function& function : functions_) {
    function.own.store(nullptr, std::memory_order_relaxed);
    function.next.store(nullptr, std::memory_order_relaxed);
  }
}

void start_gpu() noexcept {
  if (!recorder::is_active()) return;
  for (Driver* const driver : {&g_cuda, &g_hip}) driver->find();
}

void on_library_closed() noexcept {
  for (Driver* const driver : {&g_cuda, &g_hip}) driver->forget_if_closed();
}

void on_fork_child() noexcept {
  for (Driver* const driver : {&g_cuda, &g_hip}) driver->stop_asking();
}

}  // namespace oomrec::shim::gpu
