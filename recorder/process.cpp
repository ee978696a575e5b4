#include "recorder/process.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <string_view>

#include "common/system/files.h"
#include "common/system/memory.h"
#include "common/system/syscalls.h"
#include "common/system/text.h"
#include "common/text/expand.h"
#include "common/text/text.h"
#include "recorder/action.h"
#include "recorder/blocks.h"
#include "recorder/counters.h"
#include "recorder/crash.h"
#include "recorder/device/devices.h"
#include "recorder/dumps.h"
#include "recorder/ended_children.h"
#include "recorder/environment.h"
#include "recorder/failures.h"
#include "recorder/handlers.h"
#include "recorder/helper/from_process.h"
#include "recorder/injection.h"
#include "recorder/near_limit.h"
#include "recorder/news.h"
#include "recorder/rank.h"
#include "recorder/recorder.h"
#include "recorder/shared_memory.h"
#include "recorder/stack/stack.h"
#include "recorder/state.h"
#include "recorder/telling.h"
#include "recorder/tick.h"
#include "recorder/watermark.h"

namespace oomrec::recorder {

using session::g_session;
using system::Text;

constinit State g_state;

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::size_t kPathBytes = 4096;
constexpr std::size_t kJobBytes = 256;  // of a job's name

struct Process {
  char dump_pattern[kPathBytes];  // absolute; % words stand
  char dump_directory[kPathBytes];
  char session_directory[kPathBytes];
  bool python_raw_malloc;
  bool simulated;
  std::uint64_t limit_as_bytes;  // as set; 0: not set
  std::uint64_t limit_as_own_bytes;
  RankFacts rank;  // its job is in `job`
  char job[kJobBytes];
};
constinit Process g_process{};

// --- Beginning
// ------------------------------------------------------------------------------------

// In one write, however long the parts are.
void say(std::initializer_list<std::string_view> parts) noexcept {
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

// `path` made absolute; what does not fit is cut, and creating it will say so.
void make_absolute(const char* path, char (&out)[kPathBytes]) noexcept {
  Text text(out);
  char directory[1024];
  if (path[0] != '/' && system::call(SYS_getcwd, directory, sizeof(directory)) > 0)
    text << directory << '/';
  text << path;
}

void expand_dump_directory() noexcept {
  utsname host{};
  system::call(SYS_uname, &host);
  char program[1024];
  const long bytes = system::call(SYS_readlink, "/proc/self/exe", program, sizeof(program));
  text::PathWords words;
  words.pid = g_state.pid;
  words.host = host.nodename;
  words.program = {program, bytes < 0 ? 0 : static_cast<std::size_t>(bytes)};
  words.start_realtime_ns = g_session.header().start_realtime_ns;
  if (!text::expand_path(g_process.dump_pattern, words, g_process.dump_directory, kPathBytes)) {
    std::memcpy(g_process.dump_directory, g_process.dump_pattern, kPathBytes);
  }
}

// A page that the kernel wipes in a fork's child, however it was forked. Without it (Linux < 4.14)
// a raw clone goes unnoticed; fork itself has a hook.
void map_generation() noexcept {
  void* const page = system::map_private(live::kPageBytes);
  if (page == nullptr) return;
  system::call(SYS_madvise, page, live::kPageBytes, MADV_WIPEONFORK);
  g_state.generation = static_cast<std::atomic<std::uint32_t>*>(page);
}

// A difference of two counters that other threads are changing.
std::uint64_t at_least_zero(std::uint64_t difference) noexcept {
  return static_cast<std::int64_t>(difference) < 0 ? 0 : difference;
}

std::uint32_t inherited_node(InHook hook) noexcept {
  const std::uint32_t group = group_node(hook, "main");
  const std::uint64_t frame = session::special_frame(session::SpecialFrame::inherited, 0);
  const std::uint32_t node = stack::intern(hook, group, frame);
  return node == 0 ? group : node;
}

// What is left of the parent's heap as the session begins, with the little that the child has
// allocated since, as one holder; its mappings likewise. The counters have them already.
void hold_inherited(InHook hook) noexcept {
  const session::SpaceCounters& heap = g_state.unlaned[static_cast<std::size_t>(Space::heap)];
  const std::uint32_t node = inherited_node(hook);
  const auto holder_of = [&](Space space) noexcept {
    return g_state.holders.find_or_add(hook, node, space, Api::inherited, 0);
  };
  g_state.inherited_holder = holder_of(Space::heap);
  if (g_state.inherited_holder != 0) {
    g_state.holders.grow(hook, g_state.inherited_holder,
                         at_least_zero(heap.usable_allocated_bytes - heap.usable_freed_bytes),
                         at_least_zero(heap.allocated_count - heap.freed_count));
  }
  const live::RangeChange maps = g_state.ranges.adopt(hook, holder_of(Space::map));
  g_session.header().spaces[static_cast<std::size_t>(Space::map)].reserved_bytes.store(
      static_cast<std::uint64_t>(maps.reserved_bytes), std::memory_order_relaxed);
}

void describe_limits() noexcept {
  session::Header& header = g_session.header();
  header.limit_as_bytes = g_process.limit_as_bytes;
  header.limit_as_own_bytes = g_process.limit_as_own_bytes;
}

// The program may change its environment at any time, so it is read once.
void remember_rank(const char* const* environment) noexcept {
  g_process.rank = read_rank(environment);
  Text job(g_process.job);
  job << g_process.rank.job;
  g_process.rank.job = job.view();
}

void describe_rank(InHook hook) noexcept {
  const RankFacts& facts = g_process.rank;
  const session::StringId job = g_session.add_string(hook, facts.job);
  g_session.header().rank = {facts.known, facts.rank, facts.local_rank, facts.world_size, job, 0};
}

// The session of this process image; afterwards events are recorded.
bool open_session(InHook hook, bool child) noexcept {
  const Options& options = g_state.options;
  const bool want_exact = options.mode == Mode::exact;
  g_state.budget_bytes =
      options.recording_size != 0 ? options.recording_size : (want_exact ? 256 : 16) * kMiB;
  // A live block costs 32 bytes in the session and half of that in its index.
  live::g_index_budget_bytes.store(g_state.budget_bytes / 4, std::memory_order_relaxed);
  g_state.interval_bytes.store(std::max(options.sample_interval, std::uint64_t{1}),
                               std::memory_order_relaxed);
  g_state.large_bytes.store(kLargeBytes, std::memory_order_relaxed);

  session::Settings settings;
  settings.mode = options.mode;
  settings.budget_bytes = g_state.budget_bytes - g_state.budget_bytes / 4;
  settings.interval_bytes = g_state.interval_bytes.load(std::memory_order_relaxed);
  settings.large_bytes = kLargeBytes;
  settings.soft_limit_bytes = g_state.limit.bytes();
  settings.session_directory =
      g_process.session_directory[0] == '\0' ? nullptr : g_process.session_directory;
  settings.dump_directory = options.dump_dir_named ? g_process.dump_directory : nullptr;
  if (!g_session.create(hook, settings)) return false;

  session::Header& header = g_session.header();
  header.python.raw_malloc = g_process.python_raw_malloc;
  header.simulated = g_process.simulated;
  describe_limits();
  describe_rank(hook);
  g_state.start_ns = header.start_monotonic_ns;
  expand_dump_directory();
  header.dump_directory = describe_dumps(hook);
  g_state.mode.store(options.mode, std::memory_order_relaxed);
  g_state.generation->store(++g_state.last_generation, std::memory_order_relaxed);
  if (child) hold_inherited(hook);
  begin_health(hook);
  g_state.phase.store(Phase::active, std::memory_order_release);
  return true;
}

// --limit-as: the kernel enforces SIZE plus what the recorder maps, so that the program has SIZE.
void limit_address_space() noexcept {
  const Options& options = g_state.options;
  if (options.limit_as == 0) return;
  const bool want_exact = options.mode == Mode::exact;
  const std::uint64_t ours =
      want_exact ? g_state.budget_bytes + 64 * kMiB : std::max(2 * g_state.budget_bytes, 32 * kMiB);
  rlimit64 limits{};
  if (system::call(SYS_prlimit64, 0, RLIMIT_AS, nullptr, &limits) != 0) return;
  limits.rlim_cur = std::min(limits.rlim_max, std::max(options.limit_as + ours, ours));
  if (system::call(SYS_prlimit64, 0, RLIMIT_AS, &limits, nullptr) != 0)
    return say({"RLIMIT_AS could not be set"});
  if (limits.rlim_cur != options.limit_as + ours) return;  // the hard limit is lower
  g_process.limit_as_bytes = limits.rlim_cur;
  g_process.limit_as_own_bytes = ours;
  describe_limits();
}

// The user named a directory for recordings, and may look for them there. Forked children say
// nothing: it is the same again.
void tell_place() noexcept {
  const std::string_view named{g_process.session_directory};
  if (g_session.made_directory()) say({"made ", named, " for recordings"});
  const int error = g_session.directory_error();
  if (error == 0) return;
  const std::string_view path{g_session.path()};
  const std::string_view why = text::error_words(error);
  if (path.empty())
    return say({named, ": ", why, "; the recording is private memory, and is lost in a kill"});
  say({named, ": ", why, "; the recording is in ", path.substr(0, path.rfind('/')), " instead"});
}

bool same_process() noexcept {
  return system::is_sandboxed() || system::process_id() == g_state.pid;
}

}  // namespace

const char* dump_directory() noexcept { return g_process.dump_directory; }

bool start(const Options& options) noexcept {
  const InHook hook = OutsideHooks::in_hook();
  g_state.options = options;
  if (options.mode == Mode::off) return false;
  system::read_roots(environ);
  g_state.pid = system::process_id();
  start_injection(options.fail);
  set_limit(hook, options.limit);
  g_process.python_raw_malloc = variable(environ, "PYTHONMALLOC").substr(0, 6) == "malloc";
  remember_rank(environ);
  g_process.simulated = variable(environ, "OOMREC_SIMULATED") == "1";
  make_absolute(options.dump_dir, g_process.dump_pattern);
  if (options.session_dir[0] != '\0')
    make_absolute(options.session_dir, g_process.session_directory);
  std::memcpy(g_process.dump_directory, g_process.dump_pattern,
              kPathBytes);  // until it is expanded

  map_generation();
  stack::start();
  if (!open_session(hook, false)) {
    say({"recorder off: ", g_session.off_reason()});
    return false;
  }
  tell_place();
  prepare_handlers();
  if (!helper::prepare(environ)) say({"no bundles: no memory for their writer"});
  limit_address_space();
  return true;
}

bool is_active() noexcept { return phase() != Phase::off; }

// --- Fork
// -----------------------------------------------------------------------------------------

void on_fork_child(InHook hook) noexcept {
  if (phase() == Phase::off ||
      (g_state.generation->load(std::memory_order_relaxed) != 0 && same_process())) {
    return;
  }
  const bool had_session = phase() == Phase::active;
  g_state.phase.store(Phase::off, std::memory_order_relaxed);
  if (system::is_sandboxed() || !g_state.options.children)
    return;  // the parent's session is not touched again
  g_state.pid = system::process_id();
  forget_crash(hook);
  forget_handlers(hook);
  forget_shared_memory(hook);
  forget_dumps(hook);

  if (had_session) {
    keep_labels(hook);
    const session::View parent = g_session.view();
    // Mappings are known exactly, the ranges; a GPU's memory stays the parent's.
    const session::View::Totals totals = parent.totals(Space::heap);
    const std::uint64_t bytes = at_least_zero(static_cast<std::uint64_t>(totals.live_bytes));
    const std::uint64_t count = at_least_zero(static_cast<std::uint64_t>(totals.live_count));
    count_unlaned(Space::heap, {bytes, count, 0, bytes, 0});
    g_session.detach(hook);
    stack::forget_session(hook);
    forget_threads(hook);
    forget_failures(hook);
    forget_action(hook);
    forget_ticks(hook);
    forget_news(hook);
    forget_watermark(hook);
    forget_names(hook);
    g_state.holders.forget(hook);
    g_state.blocks.forget(hook);
    forget_devices(hook);
    g_state.small_blocks.forget(hook);
    g_state.limit.forget();
    const live::RangeChange maps = g_state.ranges.detach(hook);
    count_unlaned(Space::map, {maps.added_bytes, maps.added_count, 0, maps.added_bytes, 0});
  }
  restart_injection();
  g_state.waiting_bytes.store(0, std::memory_order_relaxed);
  g_state.beginning.store(false, std::memory_order_relaxed);
  g_state.inherited_holder = 0;
  g_state.generation->store(++g_state.last_generation, std::memory_order_relaxed);
  g_state.phase.store(Phase::waiting, std::memory_order_release);
}

bool begin_waiting_session(InHook hook) noexcept {
  if (phase() != Phase::waiting || g_state.beginning.exchange(true, std::memory_order_acquire)) {
    return phase() == Phase::active;
  }
  if (open_session(hook, true)) return true;
  g_state.phase.store(Phase::off, std::memory_order_relaxed);
  say({"recorder off in a child process: ", g_session.off_reason()});
  return false;
}

// --- Exec and end
// ---------------------------------------------------------------------------------

void before_exec(InHook hook) noexcept {
  if (phase() == Phase::active && same_process()) g_session.mark(hook, session::State::replaced, 0);
}

void exec_failed(InHook hook) noexcept {
  if (phase() == Phase::active && same_process()) g_session.mark(hook, session::State::running, 0);
}

namespace {

// The shells that start a program are recorded, too, and nobody wants to know of them.
bool held_much() noexcept {
  std::uint64_t peak = 0;
  for (std::size_t i = 0; i < kSpaceCount; ++i) {
    if (adds_up(static_cast<Space>(i)))
      peak += g_session.header().spaces[i].peak_bytes.load(std::memory_order_relaxed);
  }
  return peak >= 16 * kMiB;
}

// One of many that fails, and was refused nothing itself: if another rank was, that is why.
bool failed_as_a_rank(const session::Header& header, int status) noexcept {
  return header.rank.known != 0 && status != 0 && header.failures_total == 0;
}

}  // namespace

void on_exit(InHook hook, int status, ExitKind) noexcept {
  if (phase() != Phase::active || !same_process()) return;
  tell_last_failure(hook, status);
  if (g_state.options.dump_at_exit && held_much()) dump(hook, "at the end of the process");
  helper::finish(hook, static_cast<unsigned>(g_state.options.bundle_seconds));
  complete_outcome_at_end(hook, status);
  session::Header& header = g_session.header();
  const std::uint64_t now = system::monotonic_ns();
  // Who recovers it finds out whether there is something to tell.
  const bool may_follow = lost_child_lately(header, now) || failed_as_a_rank(header, status);
  if (may_follow) header.last_tick_ns.store(now, std::memory_order_relaxed);
  g_session.mark(hook, session::State::exited, status);
  if (last_failure_told() && !may_follow) g_session.remove_file(hook);
}

// What needs system calls comes first: a bundle that is being written, and this thread's lane, the
// bounds of its stack, and the names of the modules on it.
void on_sandbox(InHook hook) noexcept {
  if (phase() == Phase::active) {
    helper::finish(hook, static_cast<unsigned>(g_state.options.bundle_seconds));
    if (ThreadState* const thread = current_thread(hook); thread != nullptr)
      stack::capture(hook, thread->stacks, thread->root(hook));
  }
  remove_handlers(hook);
  system::g_filters.fetch_add(1, std::memory_order_relaxed);
}

void sandbox_failed(InHook) noexcept { system::g_filters.fetch_sub(1, std::memory_order_relaxed); }

}  // namespace oomrec::recorder
