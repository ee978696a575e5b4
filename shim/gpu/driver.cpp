#include "shim/gpu/driver.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "recorder/device_memory/preexisting_devices.h"
#include "recorder/devices/registry.h"
#include "recorder/recorder.h"
#include "shim/gpu/pytorch.h"
#include "shim/interpose/loader.h"
#include "shim/interpose/next.h"

namespace oomrec::shim::gpu {
namespace {

void* symbol(void* library, const char* name) noexcept { return real_dlsym()(library, name); }

}  // namespace

void* Driver::open() const noexcept {
  for (const char* const name : libraries_) {
    void* const library = g_next.dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
    if (library != nullptr) return library;
  }
  return nullptr;
}

bool Driver::is_mapped() const noexcept {
  struct Search {
    const Driver& driver;
    bool found = false;
    static int visit(dl_phdr_info* info, std::size_t, void* self) noexcept {
      auto& search = *static_cast<Search*>(self);
      for (const char* const name : search.driver.libraries_)
        search.found = search.found || ::strstr(info->dlpi_name, name) != nullptr;
      return search.found ? 1 : 0;
    }
  } search{*this};
  for_each_module(Search::visit, &search);
  return search.found;
}

bool Driver::find() noexcept {
  if (found_.load(std::memory_order_acquire)) return true;
  const LoaderScope loader;
  void* const library = open();
  if (library == nullptr) return false;
  const bool adopted = adopt(library, loader.scope());
  g_next.dlclose(library);
  return adopted;
}

bool Driver::adopt_library_of(void* address) noexcept {
  if (found_.load(std::memory_order_acquire)) return false;
  const LoaderScope loader;
  Dl_info info;
  void* const library = ::dladdr(address, &info) != 0
                            ? g_next.dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD)
                            : nullptr;
  if (library == nullptr) return false;
  const bool adopted = adopt(library, loader.scope());
  g_next.dlclose(library);
  return adopted;
}

// Threads may do this concurrently, because all find the same. A library without our queries is not
// a driver but another interposer.
bool Driver::adopt(void* library, const HookScope& scope) noexcept {
  if (symbol(library, queries_.front().name) == nullptr) return false;
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
  void* const any = queries_.front().to->load(std::memory_order_relaxed);
  const char* const path = ::dladdr(any, &info) != 0 ? info.dli_fname : libraries_[0];
  if (scope.outermost()) {
    recorder::describe_driver(scope.in_hook(), vendor_, path, 0, wrapped);
    scope.leave_recorder();
  }
  return true;
}

void* Driver::find_next(std::size_t index, Entry entry) noexcept {
  Function& function = functions_[index];
  if (!find()) return nullptr;
  void* const next = function.target(entry).load(std::memory_order_acquire);
  if (next != nullptr && !function.looked_up.exchange(true, std::memory_order_relaxed))
    count_lookup(LookUp::linked);
  return next;
}

void Driver::count_lookup(LookUp way) noexcept {
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

void* Driver::wrapper_for(void* address, Function* named, LookUp way) noexcept {
  if (address == nullptr) return nullptr;
  Function* known = find() ? function_at(address) : nullptr;
  // A driver under another name: recognized by the address that the program got.
  if (known == nullptr && named != nullptr && adopt_library_of(address))
    known = function_at(address);
  if (known == nullptr) return address;
  if (!known->looked_up.exchange(true, std::memory_order_relaxed)) count_lookup(way);
  return known->wrapper;
}

// Another library may be at the driver's address now.
bool Driver::is_still_loaded() const noexcept {
  Dl_info info;
  const Query& any = queries_.front();
  void* const address = any.to->load(std::memory_order_relaxed);
  return ::dladdr(address, &info) != 0 && info.dli_saddr == address && info.dli_sname != nullptr &&
         ::strcmp(info.dli_sname, any.name) == 0;
}

void Driver::reset_if_closed() noexcept {
  if (!found_.load(std::memory_order_acquire)) return;
  const LoaderScope loader;
  if (is_still_loaded()) return;
  found_.store(false, std::memory_order_relaxed);
  for (const Query& query : queries_) query.to->store(nullptr, std::memory_order_relaxed);
  for (Function& function : functions_) {
    function.own.store(nullptr, std::memory_order_relaxed);
    function.next.store(nullptr, std::memory_order_relaxed);
  }
}

// Only if the program is linked with it: a search by name would cost time in every program.
void Driver::find_linked() noexcept {
  {
    const LoaderScope loader;
    if (symbol(RTLD_NEXT, queries_.front().name) == nullptr) return;
  }
  find();
}

void start_gpu() noexcept {
  if (!recorder::is_active()) return;
  for (Driver* const driver : {&g_cuda, &g_hip}) driver->find_linked();
}

void visit_wrapped(void (*visit)(const char* name, const void* own, const void* wrapper)) noexcept {
  for (Driver* const driver : {&g_cuda, &g_hip}) {
    if (!driver->is_mapped() || !driver->find()) continue;
    for (const Function& function : driver->functions())
      visit(function.name, function.own.load(std::memory_order_relaxed), function.wrapper);
  }
}

std::uint64_t loaded_drivers() noexcept {
  std::uint64_t sum = 0;
  for (Driver* const driver : {&g_cuda, &g_hip})
    sum = sum * 31 + (driver->is_mapped() && driver->find() ? driver->own_address() : 0);
  return sum;
}

void on_library_closed() noexcept {
  for (Driver* const driver : {&g_cuda, &g_hip}) driver->reset_if_closed();
  reset_torch_if_closed();
}

void on_fork_child() noexcept {
  recorder::forget_preexisting_devices();
  for (Driver* const driver : {&g_cuda, &g_hip}) driver->stop_queries();
}

}  // namespace oomrec::shim::gpu
