// The library's constructor: finds out how it was loaded, and starts the recorder.
//
// It runs before all other constructors (initfirst in the root's meson.build), even libc's own: the
// environment comes from its arguments, and it uses neither stdio nor getenv. It leaves errno,
// environment and descriptors unchanged. If the recorder must stay off (another C library, a
// privileged program, OOMREC_MODE=off), every hook is a jump to the next definition (entries.h).
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <string_view>

#include "common/options/options.h"
#include "common/system/atomics.h"
#include "common/system/hook_scope.h"
#include "common/system/syscalls.h"
#include "common/text/text.h"
#include "older_glibc/loader.h"
#include "recorder/python/attach.h"
#include "recorder/recorder.h"
#include "shim/allocator_names.h"
#include "shim/dlopen_mode.h"
#include "shim/gpu/driver.h"
#include "shim/heap.h"
#include "shim/info.h"
#include "shim/interpose/entries.h"
#include "shim/interpose/loader.h"
#include "shim/interpose/next.h"
#include "shim/process.h"
#include "shim/python_objects.h"

// Only glibc has it: a musl program must start, too, with this library before it.
extern "C" const char* gnu_get_libc_version() __attribute__((weak));

namespace oomrec::shim {
namespace {

// A note lives as long as the process, because the recorder keeps a view of it.
constinit char g_heap_note[256];

// Joins texts into the note, cut to its capacity.
std::string_view note(std::initializer_list<std::string_view> parts) noexcept {
  std::size_t used = 0;
  for (const std::string_view part : parts) {
    const std::size_t bytes = std::min(part.size(), sizeof g_heap_note - 1 - used);
    ::memcpy(g_heap_note + used, part.data(), bytes);
    used += bytes;
  }
  return {g_heap_note, used};
}

// Whether the program's malloc is ours: tested by calling it. The address is not enough, because it
// may be a stub in the program.
bool is_malloc_bound_to_us() noexcept {
  const auto allocate = reinterpret_cast<void* (*)(size_t)>(real_dlsym()(RTLD_DEFAULT, "malloc"));
  const auto release = reinterpret_cast<void (*)(void*)>(real_dlsym()(RTLD_DEFAULT, "free"));
  if (allocate == nullptr || release == nullptr) return false;
  g_entered_unwatched = false;
  release(allocate(1));
  return g_entered_unwatched;
}

// Names the owner of the malloc that comes before ours: the program itself, or a library.
std::string_view why_not_bound() noexcept {
  Dl_info info;
  const ElfW(Sym)* symbol = nullptr;
  void* const bound = real_dlsym()(RTLD_DEFAULT, "malloc");
  const std::string_view order = "heap not observed: put liboomrec.so first in LD_PRELOAD";
  // A program that takes malloc's address has a stub of that name: an undefined symbol.
  if (::dladdr1(bound, &info, reinterpret_cast<void**>(const_cast<ElfW(Sym)**>(&symbol)),
                RTLD_DL_SYMENT) == 0 ||
      symbol == nullptr || symbol->st_shndx == SHN_UNDEF)
    return order;
  const auto base = reinterpret_cast<std::uint64_t>(info.dli_fbase);
  if (is_program_at(base)) return note({"heap not observed: the program brings its own malloc"});
  return note({order, ", before ", text::base_name(info.dli_fname)});
}

HeapState observe_heap(bool recording) noexcept {
  HeapState heap;
  heap.allocator = allocator_name();
  heap.observed = is_malloc_bound_to_us();
  if (!heap.observed) {
    heap.note = why_not_bound();
    recorder::record_heap_note(OutsideHooks::in_hook(), heap.note);
  } else if (recording) {
    find_chunks();
    start_heap();
    if (are_sizes_unknown()) {
      heap.note = note({"the heap has no totals: malloc_usable_size does not know the blocks of ",
                        heap.allocator});
      recorder::record_heap_note(OutsideHooks::in_hook(), heap.note);
    }
    redirect_allocator_names();
    heap.has_own_new = watched(Api::malloc) == Watch::on_with_pending_new;
  }
  return heap;
}

const char* value_of(const char* const* environment, std::string_view name) noexcept {
  for (; *environment != nullptr; ++environment) {
    const std::string_view variable{*environment};
    if (variable.starts_with(name) && variable.size() > name.size() && variable[name.size()] == '=')
      return *environment + name.size() + 1;
  }
  return nullptr;
}

void print(std::initializer_list<std::string_view> parts) noexcept {
  for (const std::string_view part : parts) system::call(SYS_write, 2, part.data(), part.size());
}

std::string_view off_reason(const Options& options) noexcept {
  if (::getauxval(AT_SECURE) != 0)
    return "the program is privileged (setuid, setgid or capabilities)";
  if (options.mode == Mode::off) return "OOMREC_MODE=off";
  return {};
}

// What a glibc may not have, or has in a library that the program may not load.
void find_optional_symbols() noexcept {
  if (void* const found = real_dlsym()(RTLD_DEFAULT, "__libc_single_threaded"))
    g_single_threaded = static_cast<const char*>(found);
  find_stack_size_of();
  g_next.dlerror();
}

[[gnu::constructor]] void start(int, char**, char** environment) noexcept {
  if (gnu_get_libc_version == nullptr) {  // and the loader has passed no arguments
    resolve_next();
    return resolve_missing_next();
  }
  const KeepErrno keep;
  if (oomrec_lacks_libdl() != 0) oomrec_load_libdl();
  const bool dlopened = is_dlopened();
  if (!dlopened) environ = environment;  // libc is about to set it likewise
  resolve_next();
  resolve_missing_next();
  find_optional_symbols();
  if (dlopened) return;
  Dl_info self;
  const char* const library_path =
      ::dladdr(reinterpret_cast<const void*>(&start), &self) != 0 ? self.dli_fname : "";

  OptionProblems problems;
  const Options options = read_options(environment, problems);
  const std::string_view off = off_reason(options);
  if (off.empty() && !options.quiet) {
    for (const OptionProblem& problem : problems)
      print({"oomrec: ignoring ", problem.variable, "=", problem.value, ": expected ",
             accepted_by(problem.variable), "\n"});
  }
  const bool recording = off.empty() && recorder::start(options);
  const HeapState heap = observe_heap(recording);
  if (!recording) {
    set_missing(::getauxval(AT_SECURE) != 0 ? kOffByPrivilege
                : options.mode == Mode::off ? kOffByMode
                                            : "everything: the recorder has switched itself off");
  } else if (!heap.observed) {
    set_missing(heap.note.data());
  }
  if (recording && !heap.observed && options.limit != 0 && !options.quiet)
    print({"oomrec: ", heap.note, "; the limit covers mappings only\n"});
  if (off.empty())
    start_exec(options.children, library_path);
  else
    bypass_hooks();
  if (recording) start_exit();
  if (options.python_objects && stack::is_free_threaded_python_linked()) drop_choice_of_malloc();
  if (recording) start_python_objects({options.python_sampling, options.python_objects});
  gpu::start_gpu();
  if (const char* const path = value_of(environment, "OOMREC_INFO");
      path != nullptr && ::getauxval(AT_SECURE) == 0) {
    write_info(path, options, heap, recording, off, library_path);
    ::_exit(0);
  }
}

}  // namespace
}  // namespace oomrec::shim
