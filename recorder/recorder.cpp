#include "recorder/recorder.h"
#include "recorder/events/objects.h"

#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <string_view>

#include "common/session/directories.h"
#include "common/session/unrecorded_notes.h"
#include "common/system/files.h"
#include "common/system/memory.h"
#include "common/system/syscalls.h"
#include "common/system/units.h"
#include "common/text/text.h"
#include "recorder/device_memory/warning.h"
#include "recorder/devices/registry.h"
#include "recorder/events/block_lookup.h"
#include "recorder/events/marks.h"
#include "recorder/events/shared_memory.h"
#include "recorder/failures/crash.h"
#include "recorder/failures/dump_directory.h"
#include "recorder/failures/exit.h"
#include "recorder/failures/failures.h"
#include "recorder/failures/signal_handlers.h"
#include "recorder/fault_injection/fault_injection.h"
#include "recorder/forget/forget.h"
#include "recorder/helper/from_process.h"
#include "recorder/limits/address_space.h"
#include "recorder/limits/near_limit.h"
#include "recorder/limits/thresholds.h"
#include "recorder/process/ended_processes.h"
#include "recorder/process/inherited.h"
#include "recorder/process/job.h"
#include "recorder/process/object_heap.h"
#include "recorder/stack/stack.h"
#include "recorder/state/callbacks.h"
#include "recorder/state/counters.h"
#include "recorder/state/labels.h"
#include "recorder/state/node_scope.h"
#include "recorder/state/notifications.h"
#include "recorder/state/state.h"
#include "recorder/state/thread_state.h"
#include "recorder/state/watermark.h"
#include "recorder/symbols/elf_symbols.h"
#include "recorder/tick/tick.h"

namespace oomrec::recorder {

using session::g_session;

namespace {

constexpr std::size_t kPathBytes = 4096;

struct Process {
  char session_directory[kPathBytes];
  bool python_raw_malloc;
  bool simulated;
  std::uint32_t forget_at;  // OOMREC_FORGET_AT, for tests
  char tree[64];            // the name of its process tree, of `oomrec run`; empty: none
  char notes[1200];         // the file of that run's unrecorded programs; empty: none
};
constinit Process g_process{};

// In one write, so that lines of several processes do not mix.
void write_stderr(std::initializer_list<std::string_view> parts) noexcept {
  if (g_state.options.quiet) return;
  constexpr std::size_t kMostParts = 8;
  iovec line[kMostParts];
  std::size_t count = 0;
  const auto add = [&](std::string_view part) noexcept {
    if (count < kMostParts) line[count++] = {const_cast<char*>(part.data()), part.size()};
  };
  add("oomrec: ");
  for (const std::string_view part : parts) add(part);
  add("\n");
  system::call(SYS_writev, 2, line, count);
}

// The kernel wipes this page in a fork's child, however it was forked. Without it (Linux < 4.14) a
// raw clone goes unnoticed; fork itself has a hook.
void map_generation() noexcept {
  if (g_state.generation != &g_state.no_generation) return;  // by an earlier recording
  void* const page = system::map_private(sizeof(std::uint32_t));
  if (page == nullptr) return;
  system::call(SYS_madvise, page, sizeof(std::uint32_t), MADV_WIPEONFORK);
  g_state.generation = static_cast<std::atomic<std::uint32_t>*>(page);
}

// Other threads change the counters while they are subtracted.
std::uint64_t at_least_zero(std::uint64_t difference) noexcept {
  return static_cast<std::int64_t>(difference) < 0 ? 0 : difference;
}

std::uint32_t inherited_node(InHook hook) noexcept {
  const std::uint32_t group = group_node(hook, "main");
  const std::uint64_t frame = session::special_frame(session::SpecialFrame::inherited, 0);
  const std::uint32_t node = stack::intern(hook, group, frame);
  return node == 0 ? group : node;
}

// Adds holders for the memory of the parent's heap that still exists, with the little that the
// child has allocated since, for its mappings, and for Python's objects in these. The counters have
// them already.
void add_inherited_holders(InHook hook) noexcept {
  const session::SpaceCounters& heap = g_state.unlaned[static_cast<std::size_t>(Space::heap)];
  const std::uint32_t node = inherited_node(hook);
  add_inherited_heap(hook, node,
                     at_least_zero(heap.usable_allocated_bytes - heap.usable_freed_bytes),
                     at_least_zero(heap.allocated_count - heap.freed_count));
  const live::RangeChange maps = g_state.ranges.adopt(
      hook, g_state.holders.find_or_add(hook, node, Space::map, Api::inherited, 0),
      inherits_pool() ? object_pool_holder(hook) : 0);
  add_inherited_objects(hook);
  g_session.header().spaces[static_cast<std::size_t>(Space::map)].reserved_bytes.store(
      static_cast<std::uint64_t>(maps.reserved_bytes), std::memory_order_relaxed);
}

// What of the heap is not observed; a fork's child has it, too.
struct HeapNotes {
  std::string_view allocator;
  std::string_view of_heap;
  char libraries[256];   // in other namespaces, by name
  std::size_t used = 0;  // of it
  bool are_several = false;
  std::atomic<bool> busy{false};  // a thread adds one; another one's is left out meanwhile

  // False: it is named already, or there is no space for it.
  bool add_library(std::string_view name) noexcept {
    const std::string_view before{libraries, used};
    const std::string_view between = before.empty() ? "" : ", ";
    if (before.find(name) != before.npos || used + between.size() + name.size() > sizeof libraries)
      return false;
    text::Text rest{libraries + used, sizeof libraries - used};
    used += rest.add(between).add(name).view().size();
    are_several = !before.empty();
    return true;
  }
};
constinit HeapNotes g_heap_notes{};

void write_heap_note(InHook hook) noexcept {
  const HeapNotes& notes = g_heap_notes;
  char words[1024];
  text::Text note{words, sizeof words};
  note.add(notes.of_heap);
  if (notes.used != 0) {
    note.add(notes.of_heap.empty() ? "" : "; ").add({notes.libraries, notes.used});
    note.add(notes.are_several
                 ? " were loaded in namespaces of their own (dlmopen): their memory is not recorded"
                 : " was loaded in a namespace of its own (dlmopen): its memory is not recorded");
  }
  session::Header& header = g_session.header();
  if (!note.view().empty()) header.heap_note = g_session.add_string(hook, note.view());
  if (!notes.allocator.empty()) header.allocator = g_session.add_string(hook, notes.allocator);
}

// Beside the recording.
void find_notes() noexcept {
  const std::string_view session{g_session.path()};
  system::Text path{g_process.notes};
  session::append_notes_path(path, session.substr(0, session.rfind('/')), g_process.tree);
  if (path.truncated()) path.clear();
}

enum class SessionOf : bool { program, forked_child };

// Opens the session of this process image. Afterwards events are recorded.
bool open_session(InHook hook, SessionOf owner) noexcept {
  const Options& options = g_state.options;
  const bool want_exact = options.mode == Mode::exact;
  g_state.budget_bytes =
      options.recording_size != 0 ? options.recording_size : (want_exact ? 256 : 16) * kMiB;
  // A live block costs 32 bytes in the session and half of that in its index.
  session::g_index_budget_bytes.store(g_state.budget_bytes / 4, std::memory_order_relaxed);
  g_state.interval_bytes.store(std::max(options.sample_interval, std::uint64_t{1}),
                               std::memory_order_relaxed);
  g_state.finest_interval_bytes.store(g_state.interval_bytes, std::memory_order_relaxed);
  g_state.large_bytes.store(kLargeBytes, std::memory_order_relaxed);
  g_state.least_sample_bytes.store(0, std::memory_order_relaxed);

  session::Settings settings;
  settings.mode = options.mode;
  settings.budget_bytes = g_state.budget_bytes - g_state.budget_bytes / 4;
  settings.interval_bytes = g_state.interval_bytes.load(std::memory_order_relaxed);
  settings.large_bytes = kLargeBytes;
  settings.soft_limit_bytes = g_state.limit.bytes();
  settings.limit_reserve_bytes = g_state.limit.reserve_bytes();
  settings.session_directory =
      g_process.session_directory[0] == '\0' ? nullptr : g_process.session_directory;
  settings.only_names_of_options = options.arguments == RecordedArguments::names;
  settings.dump_directory = options.is_named(OptionId::dump_dir) ? dump_directory() : nullptr;
  if (!g_session.create(hook, settings)) return false;

  session::Header& header = g_session.header();
  if (g_process.python_raw_malloc) header.python.source = session::ObjectSource::malloc;
  header.simulated = g_process.simulated;
  header.process_tree = g_session.add_string(hook, g_process.tree);
  if (owner == SessionOf::program) find_notes();
  describe_address_space_limit();
  describe_rank(hook);
  describe_process_labels(hook);
  g_state.start_ns = header.start_monotonic_ns;
  header.dump_directory = describe_dump_directory(hook);
  g_state.mode.store(options.mode, std::memory_order_relaxed);
  g_state.generation->store(++g_state.last_generation, std::memory_order_relaxed);
  if (owner == SessionOf::forked_child) {
    add_inherited_holders(hook);
    g_heap_notes.busy.store(false, std::memory_order_relaxed);
    write_heap_note(hook);
  }
  start_health(hook);
  start_forgetting(g_state.budget_bytes, g_process.forget_at);
  g_state.phase.store(Phase::active, std::memory_order_release);
  return true;
}

// Why no directory, or not the one that was named, has the recording: a word on the directory's
// error.
std::string_view directory_problem(int error) noexcept {
  return error == session::kTaken ? "another user has taken this name, or it is no directory"
                                  : text::error_words(error);
}

// What a kill leaves of the recording, and where: the user may have named a directory and look for
// it there. Forked children do not repeat this.
void report_session_directory() noexcept {
  const std::string_view named{g_process.session_directory};
  if (g_session.made_directory()) write_stderr({"made ", named, " for recordings"});
  const int error = g_session.directory_error();
  // ENOSYS: a sandbox denies it, such as the one of each of man's many helpers; no advice would
  // help.
  if (error == 0 || error == ENOSYS) return;
  const std::string_view path{g_session.path()};
  const std::string_view why = directory_problem(error);
  const std::string_view preferred{g_session.preferred_directory()};
  const std::string_view unusable = named.empty() || error == session::kTaken ? preferred : named;
  if (path.empty())
    return write_stderr(
        {unusable, ": ", why, "; the recording is private memory, and is lost in a kill; ",
         text::error_advice(error, "set OOMREC_SESSION_DIR to a directory of yours")});
  if (named.empty()) return;  // the commands search all of our own directories
  write_stderr(
      {unusable, ": ", why, "; the recording is in ", path.substr(0, path.rfind('/')), " instead"});
}

bool begin_session(InHook hook) noexcept {
  if (phase() != Phase::waiting || g_state.beginning.exchange(true, std::memory_order_acquire)) {
    return phase() == Phase::active;
  }
  if (open_session(hook, SessionOf::forked_child)) return true;
  g_state.phase.store(Phase::off, std::memory_order_relaxed);
  write_stderr({"recorder off in a child process: ", g_session.off_reason()});
  return false;
}

// Everything that is of a session, which has been unmapped. No other thread is in the recorder.
void forget_session(InHook hook) noexcept {
  stack::reset_after_fork(hook);
  reset_forgetting_after_fork(hook);
  reset_threads_after_fork(hook);
  reset_marks_after_fork(hook);
  reset_sent_signals_after_fork(hook);
  reset_failures_after_fork(hook);
  reset_oom_action_after_fork(hook);
  reset_ticks_after_fork(hook);
  reset_thresholds_after_fork(hook);
  reset_waiters_after_fork(hook);
  reset_watermark_after_fork(hook);
  reset_object_heap_after_fork(hook);
  reset_names_after_fork(hook);
  g_state.holders.reset(hook);
  g_state.blocks.reset(hook);
  g_state.objects.start_anew(hook);
  reset_devices_after_fork(hook);
  reset_device_warnings_after_fork(hook);
  g_state.small_blocks.reset(hook);
  g_state.limit.close_reserve();
}

void use_clock_of_kernel(InHook hook) noexcept {
  const std::uint64_t start = ::getauxval(AT_SYSINFO_EHDR);  // 0: an emulator has none
  std::uint64_t function = 0;
  if (start != 0) {
    symbols::ElfSymbols vdso{hook, start};
    for (const char* const name : {"__vdso_clock_gettime", "__kernel_clock_gettime"})
      if (function == 0 && vdso.valid()) function = vdso.address_of(hook, name);
  }
  system::use_clock(reinterpret_cast<system::ReadClock*>(function));
}

}  // namespace

bool start(const Options& options) noexcept {
  const InHook hook = OutsideHooks::in_hook();
  g_state.options = options;
  g_callbacks = {on_fork_child, begin_session, run_tick, on_published, forget};
  stack::g_is_block = is_small_block;
  if (options.mode == Mode::off) return false;
  use_clock_of_kernel(hook);
  system::read_roots(environ);
  g_state.pid = system::process_id();
  start_fault_injection(options.fail);
  set_soft_limit(hook, options.limit);
  g_process.python_raw_malloc = variable(environ, "PYTHONMALLOC").substr(0, 6) == "malloc";
  store_rank(environ);
  store_process_labels(environ);
  std::uint64_t nodes = 0;
  g_process.forget_at = oomrec::parse_size(variable(environ, "OOMREC_FORGET_AT"), nodes)
                            ? static_cast<std::uint32_t>(nodes)
                            : 0;
  g_process.simulated = variable(environ, "OOMREC_SIMULATED") == "1";
  system::Text{g_process.tree} << variable(environ, kProcessTreeVariable);
  g_process.session_directory[0] = '\0';
  if (options.session_dir[0] != '\0')
    make_absolute(options.session_dir, g_process.session_directory);
  start_dump_directory(options.dump_dir);

  map_generation();
  if (g_state.last_generation == 0) stack::start();
  if (!open_session(hook, SessionOf::program)) {
    write_stderr({"recorder off: ", g_session.off_reason()});
    return false;
  }
  report_session_directory();
  prepare_handlers();
  if (!helper::prepare(environ)) write_stderr({"no bundles: no memory for their writer"});
  if (!limit_address_space(hook)) write_stderr({"RLIMIT_AS could not be set"});
  return true;
}

const char* off_reason() noexcept { return g_session.off_reason(); }

const char* private_recording_reason() noexcept {
  static constinit char reason[512];
  if (g_session.path()[0] != '\0') return nullptr;
  system::Text text{reason};
  text.clear();
  text << g_session.preferred_directory() << ": " << directory_problem(g_session.directory_error());
  return reason;
}

void stop(InHook hook) noexcept {
  if (phase() == Phase::off) return;
  const bool has_session = phase() == Phase::active && same_process();
  if (has_session) helper::finish(hook, static_cast<unsigned>(g_state.options.bundle_seconds));
  remove_handlers(hook);
  g_state.phase.store(Phase::off, std::memory_order_release);
  if (!has_session) return;
  g_session.mark(hook, session::State::exited, 0);
  g_session.remove_file(hook);
}

bool forget_recording(InHook hook) noexcept {
  if (phase() != Phase::off ||
      !helper::forget_bundles(hook, static_cast<unsigned>(g_state.options.bundle_seconds)))
    return false;
  t_thread = nullptr;
  reset_crash_after_fork(hook);
  reset_shared_memory_after_fork(hook);
  forget_dump_directories(hook);
  forget_labels();
  forget_inherited(hook);
  g_session.close(hook);
  forget_session(hook);
  forget_object_heap(hook);
  stack::on_modules_unloaded(hook);  // since then
  g_state.ranges.clear(hook);
  g_state.objects.clear(hook);
  for (session::SpaceCounters& counters : g_state.unlaned) std::construct_at(&counters);
  for (auto* counter : {&g_state.unlaned_events, &g_state.waiting_bytes})
    counter->store(0, std::memory_order_relaxed);
  g_state.beginning.store(false, std::memory_order_relaxed);
  g_state.object_pool_holder.store(0, std::memory_order_relaxed);
  g_state.inherited_holder = g_state.preexisting_holder = 0;
  return true;
}

void set_quiet(bool quiet) noexcept { g_state.options.quiet = quiet; }

bool is_active() noexcept { return phase() != Phase::off; }

void on_fork_child(InHook hook) noexcept {
  if (phase() == Phase::off ||
      (g_state.generation->load(std::memory_order_relaxed) != 0 && same_process())) {
    return;
  }
  const bool had_session = phase() == Phase::active;
  g_state.phase.store(Phase::off, std::memory_order_relaxed);
  if (system::is_sandboxed() || !g_state.options.children)
    return;  // leave the parent's session alone
  g_state.pid = system::process_id();
  reset_crash_after_fork(hook);
  reset_handlers_after_fork(hook);
  reset_shared_memory_after_fork(hook);
  reset_dump_directory_after_fork(hook);

  if (had_session) {
    save_labels(hook);
    copy_inherited(hook);
    const session::View parent = g_session.view();
    // The ranges know the inherited mappings exactly; a GPU's memory stays the parent's.
    const session::View::Totals totals = parent.totals(Space::heap);
    const std::uint64_t bytes = at_least_zero(static_cast<std::uint64_t>(totals.live_bytes));
    const std::uint64_t count = at_least_zero(static_cast<std::uint64_t>(totals.live_count));
    count_unlaned(Space::heap, {bytes, count, 0, bytes, 0});
    g_session.detach(hook);
    forget_session(hook);
    const live::RangeChange maps =
        g_state.ranges.detach(hook, g_state.object_pool_holder.exchange(0));
    count_unlaned(Space::map, {maps.added_bytes, maps.added_count, 0, maps.added_bytes, 0});
  }
  reset_fault_injection_after_fork();
  g_state.waiting_bytes.store(0, std::memory_order_relaxed);
  g_state.beginning.store(false, std::memory_order_relaxed);
  g_state.inherited_holder = g_state.preexisting_holder = 0;
  g_state.generation->store(++g_state.last_generation, std::memory_order_relaxed);
  g_state.phase.store(Phase::waiting, std::memory_order_release);
}

void before_fork_inside_hook(InHook hook) noexcept {
  if (phase() == Phase::active) set_state_wiped(hook, false);
}

void after_fork_inside_hook(InHook hook, bool in_child) noexcept {
  if (phase() != Phase::active) return;
  if (!in_child) return set_state_wiped(hook, true);
  abandon_state(hook);
  g_state.phase.store(Phase::off, std::memory_order_relaxed);
}

void before_exec(InHook hook) noexcept {
  if (phase() == Phase::active && same_process()) g_session.mark(hook, session::State::replaced, 0);
}

void exec_failed(InHook hook) noexcept {
  if (phase() == Phase::active && same_process()) g_session.mark(hook, session::State::running, 0);
}

bool note_unrecorded_image(InHook, std::int32_t pid, std::string_view reason) noexcept {
  const bool is_own = pid == system::process_id();
  const std::int32_t parent =
      is_own ? static_cast<std::int32_t>(system::call(SYS_getppid)) : system::process_id();
  return g_process.notes[0] != '\0' && session::add_note(g_process.notes, {pid, parent, reason});
}

void on_daemon_child(InHook hook) noexcept {
  if (phase() != Phase::active) return;
  const session::Header& parent = g_session.header();
  if (parent.failures_total.load() == 0 && parent.ended_count.load() == 0)
    g_session.remove_file(hook);
}

void on_module_unload(InHook hook) noexcept {
  if (phase() != Phase::active) return;
  g_session.header().module_generation.fetch_add(1, std::memory_order_relaxed);
  stack::on_modules_unloaded(hook);
  if (stack::has_many_dead_modules()) session::g_forget_at.store(0, std::memory_order_relaxed);
}

void record_heap_note(InHook hook, std::string_view note) noexcept {
  g_heap_notes.of_heap = note;
  if (phase() == Phase::active) write_heap_note(hook);
}

void record_allocator(InHook hook, std::string_view file_name) noexcept {
  g_heap_notes.allocator = file_name;
  if (phase() == Phase::active) write_heap_note(hook);
}

void record_other_namespace(InHook hook, std::string_view path) noexcept {
  HeapNotes& notes = g_heap_notes;
  if (phase() != Phase::active || notes.busy.exchange(true, std::memory_order_acquire)) return;
  if (notes.add_library(text::base_name(path))) write_heap_note(hook);
  notes.busy.store(false, std::memory_order_release);
}

void record_preexisting_objects(InHook hook, std::string_view counts) noexcept {
  if (phase() == Phase::active)
    g_session.header().preexisting_objects.store(g_session.add_string(hook, counts),
                                                 std::memory_order_release);
}

// First does everything that needs system calls: finishes a bundle that is being written, and
// captures a stack, which gets this thread a lane, the bounds of its stack and the names of the
// modules on it.
void on_sandbox(InHook hook) noexcept {
  if (phase() == Phase::active) {
    helper::finish(hook, static_cast<unsigned>(g_state.options.bundle_seconds));
    if (ThreadState* const thread = current_thread(hook); thread != nullptr) {
      const NodeScope nodes{hook, thread};
      stack::capture(hook, thread->stacks, thread->root(hook));
    }
  }
  remove_handlers(hook);
  system::g_filters.fetch_add(1, std::memory_order_relaxed);
}

void sandbox_failed(InHook) noexcept { system::g_filters.fetch_sub(1, std::memory_order_relaxed); }

}  // namespace oomrec::recorder
