// `oomrec attach`: begins and ends the recording of a program that is already running.
//
// The command loads this library by a call of dlopen on one of the program's threads, then calls
// these two functions there. It has chosen a moment at which that thread is in no allocator, no
// loader and no other function of libc that may hold a lock. The other threads go on meanwhile.
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "common/machine/page.h"
#include "common/options/options.h"
#include "common/session/attach_pages.h"
#include "common/system/files.h"
#include "common/system/text.h"
#include "common/text/text.h"
#include "recorder/device_memory/preexisting_devices.h"
#include "recorder/events/mappings.h"
#include "recorder/process/preexisting.h"
#include "recorder/python/interpreter.h"
#include "recorder/recorder.h"
#include "recorder/state/thread_state.h"
#include "shim/allocator_names.h"
#include "shim/api.h"
#include "shim/attach/mappings_before.h"
#include "shim/attach/shell_commands.h"
#include "shim/dlopen_mode.h"
#include "shim/gpu/driver.h"
#include "shim/gpu/pytorch.h"
#include "shim/heap.h"
#include "shim/interpose/export.h"
#include "shim/interpose/loader.h"
#include "shim/interpose/next.h"
#include "shim/interpose/redirections.h"
#include "shim/process.h"
#include "shim/python_objects.h"

extern "C" {
// The command fills it, then calls oomrec_attach_gpu().
[[gnu::visibility("default")]] extern oomrec::session::GpuBeforeAttach oomrec_gpu_before_attach;
constinit oomrec::session::GpuBeforeAttach oomrec_gpu_before_attach{};
}

namespace oomrec::shim {
namespace {

using session::GpuBeforeAttach;

constexpr int kRecords = 1, kIsIdle = 2;  // oomrec_attached

// The command's settings: "OOMREC_MODE=exact" and so on, and LD_PRELOAD for the programs that this
// one starts. They live as long as the process, because the options point into them.
struct Settings {
  char text[4096];
  std::array<const char*, 64> variables;

  // `from`: one after the other, each with its NUL, the last one empty.
  bool copy(const char* from) noexcept {
    std::size_t used = 0;
    std::size_t count = 0;
    while (*from != '\0') {
      const std::size_t bytes = ::strlen(from) + 1;
      if (used + bytes > sizeof text || count + 1 == variables.size()) return false;
      ::memcpy(text + used, from, bytes);
      variables[count++] = text + used;
      used += bytes;
      from += bytes;
    }
    variables[count] = nullptr;
    return true;
  }
};
constinit Settings g_settings{};
constinit bool g_resolved = false;

Dl_info own_module() noexcept {
  Dl_info info{};
  ::dladdr(reinterpret_cast<const void*>(&own_module), &info);
  return info;
}

// The program's own allocator serves its own calls directly, without a word that can be redirected.
bool is_programs_own(const void* function) noexcept {
  return is_program_at(reinterpret_cast<std::uint64_t>(library_of(function)));
}

struct Heap {
  std::uint64_t bytes;       // that the allocator has given out
  std::uint64_t own_mapped;  // of them in blocks with mappings of their own
  bool has_mappings;         // which mappings are not the allocator's can be recognized
};

// For another allocator than glibc's, its size is the resident private memory.
Heap heap_now() noexcept {
  using Mallinfo = struct mallinfo2();  // since glibc 2.33
  void* const own = g_glibc_chunks ? real_dlsym()(RTLD_DEFAULT, "mallinfo2") : nullptr;
  if (own != nullptr) {
    const struct mallinfo2 now = reinterpret_cast<Mallinfo*>(own)();
    return {now.uordblks + now.hblkhd, now.hblkhd, true};
  }
  char text[128];
  const long bytes = system::read_file("/proc/self/statm", text, sizeof text);
  if (bytes <= 0) return {};
  std::string_view rest{text, static_cast<std::size_t>(bytes)};
  system::number_in(rest, &rest);  // all of its address space
  const std::uint64_t resident = system::number_in(rest, &rest);
  const std::uint64_t shared = system::number_in(rest, &rest);
  return {resident > shared ? (resident - shared) * machine::page_bytes() : 0, 0, false};
}

// An interpreter's own heap reserves more than it uses.
bool is_object_heap(const MappingsBefore::Piece& piece) noexcept {
  constexpr std::uint64_t kReserve = std::uint64_t{1} << 30;
  const stack::Interpreter& python = stack::g_interpreter;
  return (python.at.free_threaded || python.may_have_own_heap) && piece.bytes() >= kReserve;
}

std::uint64_t bytes_held(const Heap& heap, const std::optional<MappingsBefore>& mappings) noexcept {
  std::uint64_t bytes = heap.bytes;
  if (mappings)
    for (const MappingsBefore::Piece& piece : *mappings)
      if (!is_object_heap(piece)) bytes += piece.bytes();
  return bytes;
}

// Why a limit that is already reached is not set: the program's next request would fail.
// nullptr: it is not reached.
const char* limit_problem(std::uint64_t limit, std::uint64_t held) noexcept {
  static char words[128];
  if (limit == 0 || held < limit) return nullptr;
  text::Text to{words, sizeof words};
  to.add("it holds ").size(held).add(" already, and its limit would be ").size(limit);
  return words;
}

// The highest first: the table of mappings is in this order.
void add_mappings(const MappingsBefore& mappings) noexcept {
  as_recorder([&](InHook hook) {
    for (const MappingsBefore::Piece* piece = mappings.end(); piece-- != mappings.begin();)
      if (!is_object_heap(*piece))
        recorder::add_preexisting_mapping(hook, piece->start, piece->bytes());
    recorder::look_at_preexisting(hook);
  });
}

std::uint64_t loaded_gpu_libraries() noexcept {
  return gpu::loaded_drivers() * 31 + gpu::loaded_torch();
}

void add_gpu_libraries() noexcept {
  gpu::visit_wrapped(add_redirection);
  gpu::visit_torch(add_exported_redirection);
}

void redirect_all() noexcept {
  prepare_redirections();
  redirect_shell_commands();
  visit_own_new(add_exported_redirection);
  add_allocator_names();
  add_later_redirections({loaded_gpu_libraries, add_gpu_libraries});
  redirect_modules(Direction::to_hooks);
  gpu::g_before_lookup.store([](void*) noexcept { redirect_new_modules(); },
                             std::memory_order_relaxed);
}

void redirect_looked_up(Direction direction) noexcept {
  const GpuBeforeAttach& before = oomrec_gpu_before_attach;
  redirect_words(
      {before.words, std::min<std::uint64_t>(before.word_count, GpuBeforeAttach::kMostWords)},
      direction);
}

const char* begin(Options options) noexcept {
  const bool observes_heap = !is_programs_own(reinterpret_cast<const void*>(g_next.malloc));
  Heap heap{};
  std::optional<MappingsBefore> mappings;  // found before the recorder has any of its own
  if (observes_heap) {
    find_chunks();
    heap = heap_now();
    if (heap.has_mappings) mappings.emplace(heap.own_mapped);
  }
  if (const char* const problem = limit_problem(options.limit, bytes_held(heap, mappings)))
    return problem;
  const bool quiet = options.quiet;
  options.quiet = true;  // the command reports what goes wrong now
  bool started = false;
  as_recorder([&](InHook) { started = recorder::start(options); });
  if (!started) return recorder::off_reason();
  // Its only readers are the commands, which could not find it.
  if (const char* const reason = recorder::private_recording_reason()) {
    as_recorder([](InHook hook) { recorder::stop(hook); });
    return reason;
  }
  recorder::set_quiet(quiet);
  start_exec(options.children, own_module().dli_fname);
  start_exit();
  start_python_objects({options.python_sampling, false, true});
  if (observes_heap) start_heap();
  as_recorder([&](InHook hook) {
    if (observes_heap)
      recorder::add_preexisting_heap(hook, heap.bytes);
    else
      recorder::record_heap_note(hook, "heap not observed: the program brings its own malloc");
  });
  if (mappings) add_mappings(*mappings);
  as_recorder([](InHook hook) { recorder::publish_preexisting(hook); });
  add_to_environments(g_settings.variables.data());
  redirect_all();
  set_missing("");
  return nullptr;
}

}  // namespace
}  // namespace oomrec::shim

extern "C" {

// The command reads these from outside: whether this copy of the library records (1), or has done
// so and is idle (2); and where a thread's pointer to its state is, from the thread's control
// block.
[[gnu::visibility("default")]] extern int oomrec_attached;
constinit int oomrec_attached = 0;
[[gnu::visibility("default")]] extern long oomrec_thread_state;
constinit long oomrec_thread_state = 0;

// Result: nullptr, or why the recording has not begun. Called again after oomrec_detach() once the
// command has seen each thread outside of this library, and set its pointer to nullptr.
OOMREC_EXPORT const char* oomrec_attach(const char* settings) {
  using namespace oomrec;
  using namespace oomrec::shim;
  const KeepErrno keep;
  if (!is_dlopened()) return "liboomrec.so was loaded when the program started";
  if (oomrec_attached == kRecords || recorder::is_active()) return "it is recorded already";
  if (::getauxval(AT_SECURE) != 0)
    return "the program is privileged (setuid, setgid, capabilities)";
  if (!g_settings.copy(settings)) return "the settings are too long";
  OptionProblems problems;
  const Options options = read_options(g_settings.variables.data(), problems);
  if (options.mode == Mode::off) return "recording is off: --mode off";
  if (!g_resolved) resolve_next_in_program();
  g_resolved = true;
  bool is_free = true;
  if (oomrec_attached == kIsIdle)
    as_recorder([&](InHook hook) { is_free = recorder::forget_recording(hook); });
  if (!is_free) return "a bundle of the recording before is still being written";
  oomrec_thread_state =
      reinterpret_cast<char*>(&recorder::t_thread) - static_cast<char*>(__builtin_thread_pointer());
  const char* const problem = begin(options);
  oomrec_attached = problem == nullptr ? kRecords : kIsIdle;
  return problem;
}

// Takes over what the command has found of GPUs. Result: nullptr.
OOMREC_EXPORT const char* oomrec_attach_gpu(void) {
  using namespace oomrec;
  using namespace oomrec::shim;
  const KeepErrno keep;
  if (oomrec_attached != kRecords) return nullptr;
  const GpuBeforeAttach& before = oomrec_gpu_before_attach;
  const auto devices = std::min<std::uint64_t>(before.device_count, GpuBeforeAttach::kMostDevices);
  as_recorder([&](InHook hook) {
    recorder::set_preexisting_devices(hook, {before.devices, devices});
  });
  redirect_looked_up(Direction::to_hooks);
  return nullptr;
}

// Ends the recording, and lets the program call the real functions again.
OOMREC_EXPORT const char* oomrec_detach(void) {
  using namespace oomrec;
  using namespace oomrec::shim;
  const KeepErrno keep;
  if (oomrec_attached != kRecords) return "the process is not attached to";
  oomrec_attached = kIsIdle;
  add_to_environments(nullptr);
  gpu::g_before_lookup.store(nullptr, std::memory_order_relaxed);
  redirect_modules(Direction::to_next);
  redirect_looked_up(Direction::to_next);
  oomrec_gpu_before_attach.word_count = oomrec_gpu_before_attach.device_count = 0;
  recorder::forget_preexisting_devices();
  stop_python_objects();
  stop_heap();
  as_recorder([](InHook hook) { recorder::stop(hook); });
  set_missing("everything: `oomrec attach --detach` has ended the recording");
  return nullptr;
}

}  // extern "C"
