// The dying process' way to write a bundle: by a helper that shares our memory and nothing else.
//
// The helper is made with clone(CLONE_VM): no thread of the process (Threads stays 1), no child
// that wait() sees, no SIGCHLD, descriptors of its own. All signals are blocked in it, because a
// handler of the program would run in both. It has the failing thread's TLS, so nothing here or
// below uses errno or thread-local state. Module memory is read by process_vm_readv: what is
// unmapped meanwhile costs a name. Where clone is refused the same function runs in place, on the
// same stack.
//
// One word tells the state: kernel and helper write it, waiting is a futex on it.
//   0         nobody at work             (the kernel, at the helper's death: CHILD_CLEARTID)
//   kClaimed  a thread prepares          (that thread, from 0)
//   tid       the helper writes          (the kernel: CHILD_SETTID)
//   kDataDone files are written, fsync and rename under way
#include <linux/futex.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>
#include <span>

#include "recorder/bundle/bundle.h"
#include "recorder/bundle/clone.h"
#include "recorder/bundle/command.h"
#include "recorder/bundle/crash_names.h"
#include "recorder/bundle/expand.h"
#include "recorder/bundle/report.h"
#include "recorder/bundle/standard_error.h"
#include "recorder/bundle/system.h"
#include "recorder/bundle/text_space.h"
#include "recorder/session/writer.h"
#include "recorder/stack/elf_symbols.h"
#include "recorder/system/memory.h"
#include "recorder/system/syscalls.h"

// Not there in a musl program.
extern "C" [[gnu::weak]] const char* gnu_get_libc_version() noexcept;

namespace oomrec::bundle {
namespace {

constexpr int kClaimed = -1;
constexpr int kDataDone = -2;
constexpr std::size_t kStackBytes = 64 * 1024;
constexpr std::size_t kWindowBytes = 64 * 1024;
constexpr std::size_t kReasonBytes = 256;
constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kSlice = kSecond / 100;

constexpr std::size_t kLabelBytes = 256;
constexpr std::size_t kMostWritten = 32;  // a process writes fewer

// Where a bundle is. Stored by the helper, which is not at work when others look.
struct Written {
  std::uint64_t number;  // 0: there is none
  bool in_fallback;
  char name[64];
};

// One of these, in mapped memory, pre-touched.
struct Desk {
  alignas(16) char stack[kStackBytes];
  Workspace work;
  alignas(8) std::byte window[kWindowBytes];
  alignas(stack::ElfSymbols) char symbols[sizeof(stack::ElfSymbols)];
  std::uint64_t symbols_start;
  session::View view;
  Cause cause;
  Destination destination;
  Report report;
  InHook hook;
  char directory[4096];
  char fallback[4096];
  char working_directory[4096];
  char reason[kReasonBytes];
  char label[kLabelBytes];
  char lines[2048];
  Completion completion;
  bool completes;        // the last bundle, instead of writing one
  const char* texts_to;  // path of the bundle that gets texts(), likewise; null: none does
  bool texts_done;
  Written written[kMostWritten];  // by number
  CommandSpace command;
  unsigned command_seconds;  // 0: there is none to run; else instead of writing a bundle
  bool in_place;
  bool reported;
  std::uint32_t ticket;
  int error;
};

constinit Desk* g_desk = nullptr;
constinit TextSpace* g_texts = nullptr;
constinit bool g_texts_open = false;  // it is memory by now

// By whoever has the desk. nullptr: there is none to be had.
TextSpace* text_space() noexcept {
  if (g_texts != nullptr && !g_texts_open)
    g_texts_open = system::open_reserved(g_texts, sizeof(TextSpace));
  return g_texts_open ? g_texts : nullptr;
}
constinit std::atomic<int> g_word{0};
constinit std::atomic<int> g_helper{0};  // its pid, until it is reaped
constinit std::atomic<int> g_owner{0};   // the process all this belongs to

// Which bundle the desk is for. A thread that wakes late finds the desk with the next thread's: its
// own result is in the slot of its ticket.
constexpr std::size_t kResults = 64;
constinit std::atomic<std::uint32_t> g_ticket{0};
constinit std::atomic<Result> g_results[kResults]{};

int process_id() noexcept { return static_cast<int>(sys::call(SYS_getpid)); }
long address(const void* pointer) noexcept { return reinterpret_cast<long>(pointer); }

// --- Names --------------------------------------------------------------------------------------

bool name_from_memory(InHook hook, std::uint64_t start, std::uint64_t pc, char* name,
                      std::size_t capacity) noexcept {
  Desk& desk = *g_desk;
  if (desk.symbols_start != start) {
    new (desk.symbols) stack::ElfSymbols{hook, start, desk.window};
    desk.symbols_start = start;
  }
  auto& symbols = *std::launder(reinterpret_cast<stack::ElfSymbols*>(desk.symbols));
  std::uint64_t offset = 0;
  return symbols.valid() && symbols.name_at(hook, pc, name, capacity, offset);
}

// --- The work, in the helper or in place --------------------------------------------------------

void close_inherited() noexcept {
  if (sys::call(SYS_close_range, 0, 1, 0) == 0 && sys::call(SYS_close_range, 3, ~0U, 0) == 0)
    return;
  constexpr int kMost = 65536;  // Linux < 5.9
  for (int fd = 0; fd < kMost; ++fd)
    if (fd != 2) sys::close(fd);
}

void set_result(const Desk& desk, Result result) noexcept {
  g_results[desk.ticket % kResults].store(result, std::memory_order_release);
}

void wake_waiter(int value) noexcept {
  g_word.store(value, std::memory_order_release);
  sys::call(SYS_futex, address(&g_word), FUTEX_WAKE, 1);
}

// Names and words in the lines are the program's own: none of them is obeyed by a terminal.
void say_lines(InHook hook, std::span<char> lines) noexcept {
  for (char& c : lines)
    if ((static_cast<unsigned char>(c) < ' ' && c != '\n') || c == '\x7f') c = '?';
  say(hook, {lines.data(), lines.size()});
}

// The data is safe from the program's end: report, and let the failing thread go on.
void on_data_written(InHook hook, void* argument) noexcept {
  Desk& desk = *static_cast<Desk*>(argument);
  set_result(desk, Result::written);
  if (!desk.report.quiet && !desk.reported) {
    Text lines{desk.lines};
    if (!desk.report.told)
      report_failure(hook, lines, desk.view, desk.cause, desk.work.verdict, desk.work);
    if (desk.error != 0)
      report_detour(lines, desk.directory, desk.error, desk.destination.directory);
    report_bundle(lines, desk.work.path, desk.working_directory);
    say_lines(hook, {desk.lines, lines.view().size()});
  }
  desk.reported = true;
  if (!desk.in_place) wake_waiter(kDataDone);
}

void remember_place(Desk& desk, bool in_fallback) noexcept {
  Written& place = desk.written[desk.cause.number % kMostWritten];
  place.number = desk.cause.number;
  place.in_fallback = in_fallback;
  std::memcpy(place.name, desk.work.name, sizeof place.name);
}

void write_somewhere(Desk& desk) noexcept {
  const Progress progress{on_data_written, &desk};
  int error = 0;
  desk.destination.directory = desk.directory;
  desk.error = 0;
  Result result =
      write(desk.hook, desk.view, desk.cause, desk.destination, desk.work, error, progress);
  set_result(desk, result);
  if (result == Result::written) return remember_place(desk, false);

  desk.error = error;
  const bool late = desk.reported;  // the fsync or the rename failed
  if (desk.fallback[0] != '\0') {
    desk.destination.directory = desk.fallback;
    result = write(desk.hook, desk.view, desk.cause, desk.destination, desk.work, error, progress);
    set_result(desk, result);
    if (result == Result::written) remember_place(desk, true);
  }
  // A detour on the way to the data is in the report already.
  const bool written = result == Result::written;
  if (desk.report.quiet || (!late && (written || desk.report.told))) return;
  Text lines{desk.lines};
  if (!desk.reported)
    report_failure(desk.hook, lines, desk.view, desk.cause, desk.work.verdict, desk.work);
  report_detour(lines, desk.directory, desk.error, written ? desk.work.path : "");
  say_lines(desk.hook, {desk.lines, lines.view().size()});
}

// The names are part of the evidence that the verdict rests on.
void name_crash(Desk& desk) noexcept {
  session::Crash& crash = session::g_session.header().crash;
  if (crash.signal.load(std::memory_order_acquire) != 0)
    crash.flags |= flags_by_name(desk.hook, desk.view, crash, name_from_memory);
}

// What complete() needs of a crash.
void judge_crash(Desk& desk) noexcept {
  char outcome[32];
  new (&desk.work.verdict)  // in its place: it is too large for a frame
      Verdict(verdict_of(desk.view, desk.cause.trigger, desk.cause.failure, desk.cause.reason,
                         outcome_text(desk.completion.outcome, desk.completion.value, outcome)));
  desk.completion.verdict = &desk.work.verdict;
  if (desk.report.quiet) return;
  Text lines{desk.lines};
  lines.add("oomrec: ").add(desk.work.verdict.summary).add('\n');
  say_lines(desk.hook, {desk.lines, lines.view().size()});
}

void run(void* argument) noexcept {
  Desk& desk = *static_cast<Desk*>(argument);
  if (!desk.in_place) close_inherited();
  if (desk.command_seconds != 0) return run_command(desk.command, desk.command_seconds);
  if (desk.texts_to != nullptr) {
    desk.texts_done = complete_texts(desk.hook, desk.texts_to, g_texts->texts(), desk.work);
    return;
  }
  name_crash(desk);
  if (desk.completes) {
    if (desk.completion.crash != nullptr) judge_crash(desk);
    complete(desk.hook, desk.work.path, desk.completion, desk.work);
    return;
  }
  const long bytes =
      sys::call(SYS_getcwd, address(desk.working_directory), sizeof desk.working_directory);
  if (bytes <= 0) desk.working_directory[0] = '\0';
  write_somewhere(desk);
}

// --- Beginning and end of a helper --------------------------------------------------------------

// The program's stack may be a small signal stack.
void run_on_stack(void* top, void* argument) noexcept {
  asm volatile(
      "mov %%rsp, %%rbx\n\t"
      "mov %[top], %%rsp\n\t"
      "call *%[run]\n\t"
      "mov %%rbx, %%rsp"
      : "+D"(argument)
      : [top] "r"(top), [run] "r"(&run)
      : "rbx", "rax", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm2", "xmm3",
        "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",
        "xmm15", "memory", "cc");
}

// A helper that was killed leaves its frames behind: to AddressSanitizer they are still in use.
void clear_stack([[maybe_unused]] Desk& desk) noexcept {
#ifdef __SANITIZE_ADDRESS__
  __asan_unpoison_memory_region(desk.stack, sizeof desk.stack);
#endif
}

// Has the desk's work done, by a helper or in place: the helper's pid, or minus an errno when the
// work is done.
long start_work(Desk& desk, bool may_be_in_place = true) noexcept {
  const std::uint64_t all = ~std::uint64_t{0};
  std::uint64_t before = 0;
  sys::call(SYS_rt_sigprocmask, SIG_SETMASK, address(&all), address(&before), 8);
  desk.in_place = false;
  clear_stack(desk);
  const long helper = clone_onto(
      desk.stack + sizeof desk.stack,
      CLONE_VM | CLONE_UNTRACED | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID, &g_word, run, &desk);
  if (helper < 0) {
    desk.in_place = true;
    if (may_be_in_place) run_on_stack(desk.stack + sizeof desk.stack, &desk);
    g_word.store(0, std::memory_order_release);
  } else {
    g_helper.store(static_cast<int>(helper), std::memory_order_release);
    session::g_session.header().helper_pid.store(static_cast<int>(helper),
                                                 std::memory_order_relaxed);
  }
  sys::call(SYS_rt_sigprocmask, SIG_SETMASK, address(&before), 0, 8);
  return helper;
}

// Waits while `waits(word)` and until `deadline_ns`; false at the deadline. In slices, because the
// kernel wakes one waiter only, which need not be the one that goes on; and not by a private futex,
// because the kernel's wake is for shared ones.
template <class Waits>
bool wait_while(Waits&& waits, std::uint64_t deadline_ns) noexcept {
  for (int word = g_word.load(std::memory_order_acquire); waits(word);
       word = g_word.load(std::memory_order_acquire)) {
    const std::uint64_t now = sys::monotonic_ns();
    if (now >= deadline_ns) return false;
    const std::uint64_t left = std::min(deadline_ns - now, kSlice);
    const timespec time{static_cast<time_t>(left / kSecond), static_cast<long>(left % kSecond)};
    if (sys::call(SYS_futex, address(&g_word), FUTEX_WAIT, word, address(&time)) == -EPERM)
      return false;
  }
  return true;
}

constexpr auto is_working = [](int word) noexcept { return word != 0; };

void reap() noexcept {
  const int helper = g_helper.exchange(0, std::memory_order_acq_rel);
  if (helper == 0) return;
  while (sys::call(SYS_wait4, helper, 0, __WCLONE) == -EINTR) {
  }
}

void forget_places(Desk& desk) noexcept {
  for (Written& place : desk.written) place.number = 0;
}

// After a fork the words speak of the parent's helper, which this process does not have. After a
// vfork they may speak of the child's, which shares this memory: it is waited for, until
// `deadline_ns`. False: it goes on.
bool take_over(std::uint64_t deadline_ns) noexcept {
  const int self = process_id();
  const int before = g_owner.load(std::memory_order_acquire);
  if (before == self) return true;
  const bool of_parent = before == static_cast<int>(sys::call(SYS_getppid));
  const auto is_at_work = [](int word) noexcept {
    const int helper = g_helper.load(std::memory_order_relaxed);
    return word != 0 && helper != 0 && sys::call(SYS_kill, helper, 0) == 0;
  };
  if (!of_parent && !wait_while(is_at_work, deadline_ns)) return false;
  g_owner.store(self, std::memory_order_release);
  g_helper.store(0, std::memory_order_relaxed);
  g_word.store(0, std::memory_order_release);
  if (of_parent) forget_places(*g_desk);
  return true;
}

bool claim(std::uint64_t deadline_ns) noexcept {
  for (;;) {
    if (!wait_while(is_working, deadline_ns)) return false;
    int idle = 0;
    if (g_word.compare_exchange_strong(idle, kClaimed, std::memory_order_acq_rel)) return true;
  }
}

// The desk, with the last bundle on it, to complete that: at most `seconds` after a helper that is
// at work. False: there is no such bundle, or that helper goes on.
bool claim_last_bundle(InHook hook, unsigned seconds) noexcept {
  const bool here = g_desk != nullptr && !system::is_sandboxed() &&
                    g_owner.load(std::memory_order_relaxed) == process_id();
  if (!here || !claim(sys::monotonic_ns() + seconds * kSecond)) return false;
  reap();
  Desk& desk = *g_desk;
  if (g_results[desk.ticket % kResults].load(std::memory_order_acquire) != Result::written) {
    g_word.store(0, std::memory_order_release);
    return false;
  }
  desk.hook = hook;
  desk.command_seconds = 0;
  desk.completes = true;
  desk.texts_to = nullptr;
  return true;
}

// The path of bundle `number`, by a desk that nobody is at work at. Empty: there is none.
std::string_view place_of(const Desk& desk, std::uint64_t number, Text& path) noexcept {
  const Written& place = desk.written[number % kMostWritten];
  if (number == 0 || place.number != number) return {};
  path.add(place.in_fallback ? desk.fallback : desk.directory).add('/').add(place.name);
  return path.truncated() ? std::string_view{} : path.view();
}

void fill(Desk& desk, InHook hook, const Cause& cause, const Destination& destination,
          const Report& report) noexcept {
  desk.hook = hook;
  desk.view = session::g_session.view();
  desk.cause = cause;
  desk.cause.alive = true;
  // The caller has counted this one.
  desk.cause.number = desk.view.header().bundles_written.load(std::memory_order_relaxed);
  desk.cause.exported_name = name_from_memory;
  if (gnu_get_libc_version != nullptr) desk.cause.glibc_version = gnu_get_libc_version();
  Text reason{desk.reason};
  desk.cause.reason = reason.add(cause.reason).view();
  Text label{desk.label};
  desk.cause.label = label.add(cause.label).view();
  desk.cause.texts = nullptr;
  desk.destination = destination;
  Text{desk.directory}.add(destination.directory);
  const std::string_view session_path{session::g_session.path()};
  const auto slash = session_path.rfind('/');
  Text{desk.fallback}.add(slash == std::string_view::npos ? std::string_view{}
                                                          : session_path.substr(0, slash));
  desk.cause.session_directory = desk.fallback;
  desk.report = report;
  desk.completes = false;
  desk.texts_to = nullptr;
  desk.command_seconds = 0;
  desk.symbols_start = 0;
  desk.reported = false;
  desk.lines[0] = '\0';
  desk.error = 0;
  desk.ticket = g_ticket.fetch_add(1, std::memory_order_acq_rel) + 1;
  set_result(desk, Result::failed);
}

}  // namespace

bool prepare(const char* const* environment) noexcept {
  remember_standard_error();
  if (g_desk != nullptr) return true;
  void* const memory = system::map_private(sizeof(Desk));
  if (memory == nullptr) return false;
  if (system::populate(memory, sizeof(Desk)) != 0) std::memset(memory, 0, sizeof(Desk));
  g_desk = static_cast<Desk*>(memory);
  g_texts = static_cast<TextSpace*>(system::reserve_private(sizeof(TextSpace)));
  keep_environment(environment, g_desk->command);
  g_owner.store(process_id(), std::memory_order_relaxed);
  return true;
}

bool finish(InHook, unsigned seconds) noexcept {
  if (g_desk == nullptr || (g_word.load(std::memory_order_acquire) == 0 &&
                            g_helper.load(std::memory_order_relaxed) == 0))
    return true;
  const std::uint64_t deadline = sys::monotonic_ns() + seconds * kSecond;
  if (!take_over(deadline) || !wait_while(is_working, deadline)) return false;
  reap();
  return true;
}

bool complete_last(InHook hook, OutcomeKind kind, std::int32_t value, unsigned seconds) noexcept {
  if (!claim_last_bundle(hook, 0)) return false;
  g_desk->completion = {kind, value, repeats_of(g_desk->view, g_desk->cause.failure)};
  start_work(*g_desk);
  finish(hook, seconds);
  return true;
}

bool complete_last_by_crash(InHook hook, bool quiet, unsigned seconds) noexcept {
  if (!claim_last_bundle(hook, seconds)) return false;
  Desk& desk = *g_desk;
  const session::Crash& crash = session::g_session.header().crash;
  desk.view = session::g_session.view();
  desk.symbols_start = 0;
  desk.report.quiet = quiet;
  desk.completion = {OutcomeKind::signal,
                     static_cast<std::int32_t>(crash.signal.load(std::memory_order_relaxed)),
                     repeats_of(desk.view, desk.cause.failure)};
  desk.completion.crash = &crash;
  desk.completion.crashed = &desk.view;
  desk.completion.exported_name = name_from_memory;
  start_work(desk);
  finish(hook, seconds);
  return true;
}

std::string_view path_of(InHook hook, std::uint64_t number, std::span<char> buffer,
                         unsigned seconds) noexcept {
  if (g_desk == nullptr || buffer.empty() || !finish(hook, seconds)) return {};
  Text path{buffer.data(), buffer.size()};
  return g_owner.load(std::memory_order_relaxed) == process_id() ? place_of(*g_desk, number, path)
                                                                 : std::string_view{};
}

bool complete_texts_of(InHook hook, std::uint64_t number, const ExceptionTexts& texts,
                       unsigned seconds) noexcept {
  if (g_desk == nullptr || system::is_sandboxed()) return false;
  const std::uint64_t deadline = sys::monotonic_ns() + seconds * kSecond;
  if (!take_over(deadline) || !claim(deadline)) return false;
  reap();
  Desk& desk = *g_desk;
  TextSpace* const space = text_space();
  bool known = false;
  if (space != nullptr) {
    Text path{space->path};
    known = !place_of(desk, number, path).empty();
  }
  if (!known) {
    g_word.store(0, std::memory_order_release);
    return false;
  }
  const bool whole = space->copy(texts);
  desk.hook = hook;
  desk.command_seconds = 0;
  desk.texts_to = space->path;
  desk.texts_done = false;
  start_work(desk);
  return finish(hook, seconds) && desk.texts_done && whole;
}

// Not where clone is refused: in place the command would be a child of the program.
bool run_from_process(InHook hook, const char* command, unsigned seconds) noexcept {
  if (g_desk == nullptr || system::is_sandboxed()) return false;
  const std::uint64_t deadline = sys::monotonic_ns() + seconds * kSecond;
  if (!take_over(deadline) || !claim(deadline)) return false;
  reap();
  Desk& desk = *g_desk;
  const bool written =
      g_results[desk.ticket % kResults].load(std::memory_order_acquire) == Result::written;
  if (!expand_command(command, process_id(), written ? desk.work.path : "", desk.command.text,
                      sizeof desk.command.text)) {
    g_word.store(0, std::memory_order_release);
    return false;
  }
  desk.command_seconds = seconds;
  const bool started = start_work(desk, false) > 0;
  finish(hook, seconds + 1);
  return started;
}

Result write_from_process(InHook hook, const Cause& cause, const Destination& destination,
                          const Report& report, unsigned seconds, bool* texts_written) noexcept {
  if (g_desk == nullptr || system::is_sandboxed()) return Result::failed;
  const std::uint64_t deadline = sys::monotonic_ns() + seconds * kSecond;
  if (!take_over(deadline) || !claim(deadline)) return Result::timed_out;
  reap();
  Desk& desk = *g_desk;
  fill(desk, hook, cause, destination, report);
  const std::uint32_t ticket = desk.ticket;
  if (cause.texts != nullptr) {
    TextSpace* const space = text_space();
    const bool whole = space != nullptr && space->copy(*cause.texts);
    desk.cause.texts = space != nullptr ? &space->texts() : nullptr;
    if (texts_written != nullptr) *texts_written = whole;
  }

  const long helper = start_work(desk);
  const auto result = [ticket] {
    return g_results[ticket % kResults].load(std::memory_order_acquire);
  };
  if (helper < 0) return result();

  const auto is_writing = [ticket](int word) noexcept {
    return word != 0 && word != kDataDone && g_ticket.load(std::memory_order_acquire) == ticket;
  };
  if (!wait_while(is_writing, deadline)) {
    sys::call(SYS_kill, helper, SIGKILL);
    if (!report.quiet) say(hook, "oomrec: the bundle took too long to write and was given up\n");
    return Result::timed_out;
  }
  if (g_word.load(std::memory_order_acquire) == 0) reap();
  return result();
}

}  // namespace oomrec::bundle
