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
#include "recorder/device_memory/framework_device.h"
#include "recorder/failures/exit.h"
#include "recorder/recorder.h"
#include "recorder/tick/tick.h"
#include "shim/api.h"
#include "shim/interpose/export.h"

extern "C" int dladdr1(const void*, Dl_info*, void**, int) noexcept __attribute__((weak));
extern "C" const char* gnu_get_libc_version() __attribute__((weak));
extern "C" int on_exit(void (*)(int, void*), void*) noexcept __attribute__((weak));
// What pthread_atfork() calls.
extern "C" int __register_atfork(void (*)(), void (*)(), void (*)(), void*) noexcept
    __attribute__((weak));
extern "C" void* __dso_handle __attribute__((visibility("hidden")));

namespace oomrec::shim {
namespace {

constexpr const char* kNothingBegun =
    "everything: the library was loaded by the program, and no recording was begun (oomrec_start)";
constexpr const char* kNoEvents =
    "allocations, their stacks and refusals: the library was loaded by the program, not before it; "
    "start the program by `oomrec run`, or with LD_PRELOAD";
constexpr const char* kHeapNote =
    "allocations not observed: the program loaded the recorder after its start. Memory of the "
    "process "
    "and what frameworks say of their devices is all that is known";

constinit bool g_dlopened = false;
constinit std::atomic<bool> g_beginning{false};
constinit std::atomic<const char*> g_missing{""};

const link_map* map_of(const void* address) noexcept {
  Dl_info info;
  void* map = nullptr;
  const bool found = ::dladdr1(address, &info, &map, RTLD_DL_LINKMAP) != 0;
  return found ? static_cast<const link_map*>(map) : nullptr;
}

void on_end(int status, void*) {
  as_recorder([&](InHook hook) { recorder::on_exit(hook, status); });
}

void in_fork_child() {
  as_recorder([](InHook hook) { recorder::on_fork_child(hook); });
}

bool begin() noexcept {
  const KeepErrno keep;
  OptionProblems problems;
  Options options = read_options(environ, problems);
  const bool is_privileged = ::getauxval(AT_SECURE) != 0;
  if (is_privileged || options.mode == Mode::off) {
    set_missing(is_privileged ? kOffByPrivilege : kOffByMode);
    return false;
  }
  // What only those enforce who see the calls.
  options.limit = options.limit_as = 0;
  options.fail = options.limit_gpu = "";
  bool begun = false;
  as_recorder([&](InHook hook) {
    begun = recorder::start(options);
    if (begun) recorder::note_heap(hook, kHeapNote);
  });
  if (!begun) return false;
  ::on_exit(on_end, nullptr);
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
  // Of another namespace (dlmopen) the first is not the program, which has no name.
  g_dlopened = next == nullptr || first->l_name[0] != '\0';
  if (g_dlopened) set_missing(kNothingBegun);
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
  if (shim::g_beginning.exchange(true)) return 0;  // another thread is starting it
  const bool begun = shim::begin();
  if (!begun) shim::g_beginning.store(false);
  return begun ? 1 : 0;
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
  recorder::FrameworkDevice note{};
  note.vendor = vendor == "cuda" ? session::Vendor::cuda : session::Vendor::hip;
  note.ordinal = ordinal;
  if (name != nullptr) note.name = {name, strnlen(name, sizeof(session::Device::name) - 1)};
  note.total_bytes = total_bytes;
  note.free_bytes = free_bytes;
  note.allocated_bytes = allocated_bytes;
  note.reserved_bytes = reserved_bytes;
  as_recorder([&](InHook hook) { recorder::on_framework_device(hook, note); });
}

}  // extern "C"
