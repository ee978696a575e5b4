#include "shim/dlopen_mode.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <string_view>

#include "common/options/options.h"
#include "common/system/syscalls.h"
#include "include/oomrec.h"
#include "recorder/device_memory/pytorch.h"
#include "recorder/failures/exit.h"
#include "recorder/recorder.h"
#include "recorder/tick/tick.h"
#include "shim/api.h"
#include "shim/interpose/export.h"

extern "C" const char* gnu_get_libc_version() __attribute__((weak));
extern "C" int on_exit(void (*)(int, void*), void*) noexcept __attribute__((weak));
// What pthread_atfork() calls.
extern "C" int __register_atfork(void (*)(), void (*)(), void (*)(), void*) noexcept
    __attribute__((weak));
extern "C" void* __dso_handle __attribute__((visibility("hidden")));

namespace oomrec::shim {
namespace {

constexpr const char* kNotStarted =
    "everything: the library was loaded by the program, and oomrec_start() has not been called";
constexpr const char* kNoEvents =
    "allocations, their stacks and refusals: the library was loaded by the program, not before it; "
    "start the program by `oomrec run`, or with LD_PRELOAD";
constexpr const char* kHeapNote =
    "allocations not observed: the program loaded the recorder after its start. Only the "
    "process' memory and the figures that frameworks report about their devices are known";

constinit bool g_dlopened = false;
constinit std::atomic<bool> g_starting{false};
constinit std::atomic<const char*> g_missing{""};

const link_map* map_of(const void* address) noexcept {
  Dl_info info;
  void* map = nullptr;
  const bool found = ::dladdr1(address, &info, &map, RTLD_DL_LINKMAP) != 0;
  return found ? static_cast<const link_map*>(map) : nullptr;
}

void on_process_exit(int status, void*) {
  as_recorder([&](InHook hook) { recorder::on_exit(hook, status); });
}

void in_fork_child() {
  as_recorder([](InHook hook) { recorder::on_fork_child(hook); });
}

bool start_recording() noexcept {
  const KeepErrno keep;
  OptionProblems problems;
  Options options = read_options(environ, problems);
  const bool is_privileged = ::getauxval(AT_SECURE) != 0;
  if (is_privileged || options.mode == Mode::off) {
    set_missing(is_privileged ? kOffByPrivilege : kOffByMode);
    return false;
  }
  turn_off(options, kRefuses);
  bool started = false;
  as_recorder([&](InHook hook) {
    started = recorder::start(options);
    if (started) recorder::record_heap_note(hook, kHeapNote);
  });
  if (!started) return false;
  ::on_exit(on_process_exit, nullptr);
  ::__register_atfork(nullptr, nullptr, in_fork_child, &__dso_handle);
  set_missing(kNoEvents);
  return true;
}

}  // namespace

bool is_dlopened() noexcept {
  const link_map* const ours = map_of(reinterpret_cast<const void*>(&map_of));
  const link_map* const libc = map_of(reinterpret_cast<const void*>(&gnu_get_libc_version));
  if (ours == nullptr || libc == nullptr) return false;
  const link_map* first = ours;
  while (first->l_prev != nullptr) first = first->l_prev;
  const link_map* next = ours;
  while (next != nullptr && next != libc) next = next->l_next;
  // In another namespace (dlmopen) the first library is not the program, which has no name.
  g_dlopened = next == nullptr || first->l_name[0] != '\0';
  if (g_dlopened) set_missing(kNotStarted);
  return g_dlopened;
}

void set_missing(const char* what) noexcept { g_missing.store(what, std::memory_order_release); }

}  // namespace oomrec::shim

using oomrec::InHook;
using oomrec::shim::as_recorder;

extern "C" {

OOMREC_EXPORT int oomrec_start(void) {
  using namespace oomrec;
  if (recorder::is_active() || !shim::g_dlopened) return recorder::is_active() ? 1 : 0;
  if (shim::g_starting.exchange(true)) return 0;  // another thread is starting it
  const bool started = shim::start_recording();
  if (!started) shim::g_starting.store(false);
  return started ? 1 : 0;
}

OOMREC_EXPORT const char* oomrec_missing(void) {
  return oomrec::shim::g_missing.load(std::memory_order_acquire);
}

OOMREC_EXPORT void oomrec_tick(void) {
  as_recorder([](InHook hook) { oomrec::recorder::tick(hook); });
}

OOMREC_EXPORT void oomrec_note_device(const char* kind, int32_t ordinal, const char* name,
                                      uint64_t total_bytes, uint64_t free_bytes,
                                      uint64_t allocated_bytes, uint64_t reserved_bytes) {
  using namespace oomrec;
  if (!shim::g_dlopened || kind == nullptr) return;
  const std::string_view vendor{kind};
  if (vendor != "cuda" && vendor != "hip") return;
  recorder::FrameworkDevice device{};
  device.vendor = vendor == "cuda" ? session::Vendor::cuda : session::Vendor::hip;
  device.ordinal = ordinal;
  if (name != nullptr) device.name = {name, strnlen(name, sizeof(session::Device::name) - 1)};
  device.total_bytes = total_bytes;
  device.free_bytes = free_bytes;
  device.allocated_bytes = allocated_bytes;
  device.reserved_bytes = reserved_bytes;
  as_recorder([&](InHook hook) { recorder::on_framework_device(hook, device); });
}

}  // extern "C"
