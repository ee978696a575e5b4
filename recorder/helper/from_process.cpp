// The dying process' way to write a bundle: by the helper, with what is laid out on the desk.
//
// Module memory is read by process_vm_readv: what is unmapped meanwhile costs a name.
#include <sys/syscall.h>

#include <cstring>
#include <new>
#include <span>

#include "common/calls/calls.h"
#include "common/system/memory.h"
#include "common/system/syscalls.h"
#include "common/text/expand.h"
#include "recorder/helper/crash_names.h"
#include "recorder/helper/report.h"
#include "recorder/helper/standard_error.h"
#include "recorder/helper/writer_state.h"
#include "recorder/session/writer.h"

// Not there in a musl program.
extern "C" [[gnu::weak]] const char* gnu_get_libc_version() noexcept;

namespace oomrec::helper {

constinit Desk* g_desk = nullptr;

namespace {

long address(const void* pointer) noexcept { return reinterpret_cast<long>(pointer); }

// --- Names --------------------------------------------------------------------------------------

bool name_from_memory(InHook hook, std::uint64_t start, std::uint64_t pc, char* name,
                      std::size_t capacity) noexcept {
  Desk& desk = *g_desk;
  if (desk.symbols_start != start) {
    new (desk.symbols) symbols::ElfSymbols{hook, start, desk.window};
    desk.symbols_start = start;
  }
  auto& symbols = *std::launder(reinterpret_cast<symbols::ElfSymbols*>(desk.symbols));
  std::uint64_t offset = 0;
  return symbols.valid() && symbols.name_at(hook, pc, name, capacity, offset);
}

// --- The work, in the helper or in place --------------------------------------------------------

void close_inherited() noexcept {
  if (calls::call(SYS_close_range, 0, 1, 0) == 0 && calls::call(SYS_close_range, 3, ~0U, 0) == 0)
    return;
  constexpr int kMost = 65536;  // Linux < 5.9
  for (int fd = 0; fd < kMost; ++fd)
    if (fd != 2) calls::close(fd);
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
  set_result(desk, bundle::Result::written);
  if (!desk.report.quiet && !desk.reported) {
    text::Text lines{desk.lines};
    if (!desk.report.told)
      report_failure(hook, lines, desk.view, desk.cause, desk.work.verdict, desk.work);
    if (desk.error != 0)
      report_detour(lines, desk.directories[desk.directory], desk.error,
                    desk.destination.directory);
    report_bundle(lines, desk.work.path, desk.working_directory);
    say_lines(hook, {desk.lines, lines.view().size()});
  }
  desk.reported = true;
  if (!desk.in_place) helper::tell_data_done();
}

void remember_place(Desk& desk, bool in_fallback) noexcept {
  Written& place = desk.written[desk.cause.number % kMostWritten];
  place.number = desk.cause.number;
  place.directory = desk.directory;
  place.in_fallback = in_fallback;
  std::memcpy(place.name, desk.work.name, sizeof place.name);
}

bundle::Result write_to(Desk& desk, const char* directory, int& error) noexcept {
  const bundle::Progress progress{on_data_written, &desk};
  desk.destination.directory = directory;
  const bundle::Result result =
      write(desk.hook, desk.view, desk.cause, desk.destination, desk.work, error, progress);
  set_result(desk, result);
  desk.last_written = result == bundle::Result::written;
  if (desk.last_written) remember_place(desk, directory == desk.fallback);
  return result;
}

void write_somewhere(Desk& desk) noexcept {
  int error = 0;
  desk.error = 0;
  if (write_to(desk, desk.directories[desk.directory], error) == bundle::Result::written) return;

  desk.error = error;
  const bool late = desk.reported;  // the fsync or the rename failed
  const bool written =
      desk.fallback[0] != '\0' && write_to(desk, desk.fallback, error) == bundle::Result::written;
  // A detour on the way to the data is in the report already.
  if (desk.report.quiet || (!late && (written || desk.report.told))) return;
  text::Text lines{desk.lines};
  if (!desk.reported)
    report_failure(desk.hook, lines, desk.view, desk.cause, desk.work.verdict, desk.work);
  report_detour(lines, desk.directories[desk.directory], desk.error, written ? desk.work.path : "");
  say_lines(desk.hook, {desk.lines, lines.view().size()});
}

// The names are part of the evidence that the verdict rests on.
void name_crash(Desk& desk) noexcept {
  session::Crash& crash = session::g_session.header().crash;
  if (crash.signal.load(std::memory_order_acquire) != 0)
    crash.flags |= flags_by_name(desk.hook, desk.view, crash, name_from_memory);
}

void write_bundle(Desk& desk) noexcept {
  name_crash(desk);
  const long bytes =
      calls::call(SYS_getcwd, address(desk.working_directory), sizeof desk.working_directory);
  if (bytes <= 0) desk.working_directory[0] = '\0';
  write_somewhere(desk);
}

void complete_bundle(Desk& desk) noexcept {
  complete(desk.hook, desk.work.path, desk.completion, desk.work);
}

void complete_by_crash(Desk& desk) noexcept {
  name_crash(desk);
  char outcome[32];
  new (&desk.work.verdict)  // in its place: it is too large for a frame
      verdict::Verdict(verdict::verdict_of(
          desk.view, desk.cause.trigger, desk.cause.failure, desk.cause.reason,
          bundle::outcome_text(desk.completion.outcome, desk.completion.value, outcome)));
  desk.completion.verdict = &desk.work.verdict;
  if (!desk.report.quiet) {
    text::Text lines{desk.lines};
    lines.add("oomrec: ").add(desk.work.verdict.summary).add('\n');
    say_lines(desk.hook, {desk.lines, lines.view().size()});
  }
  complete_bundle(desk);
}

void run_command(Desk& desk) noexcept { run_command(desk.command, desk.command_seconds); }

void run(void* argument) noexcept {
  Desk& desk = *static_cast<Desk*>(argument);
  if (!desk.in_place) {
    session::g_session.header().helper_pid.store(helper::process_id(), std::memory_order_relaxed);
    close_inherited();
  }
  desk.errand(desk);
}

// --- Before it ----------------------------------------------------------------------------------

// The desk, with the last bundle on it, to complete that: at most `seconds` after a helper that is
// at work. nullptr: there is no such bundle, or that helper goes on.
Desk* claim_last_bundle(InHook hook, unsigned seconds) noexcept {
  Desk* const desk = claim_desk(hook, calls::monotonic_ns() + seconds * kSecond);
  if (desk == nullptr || desk->last_written) return desk;
  helper::release();
  return nullptr;
}

// The bundles that are known are those of this process, not of a parent's.
void own(Desk& desk) noexcept {
  const int self = helper::process_id();
  if (desk.process == self) return;
  desk.process = self;
  desk.last_written = false;
  for (Written& place : desk.written) place.number = 0;
}

// Its number among those of the desk, where it stands until kDirectories others have been named.
void name_directory(Desk& desk, std::string_view path) noexcept {
  for (std::uint32_t at = 0; at < kDirectories; ++at) {
    if (path != desk.directories[at]) continue;
    desk.directory = at;
    return;
  }
  desk.directory = (desk.directory + 1) % kDirectories;
  text::Text{desk.directories[desk.directory]}.add(path);
  for (Written& place : desk.written)
    if (place.directory == desk.directory) place.number = 0;
}

void fill(Desk& desk, const bundle::Cause& cause, const bundle::Destination& destination,
          const Report& report) noexcept {
  desk.view = session::g_session.view();
  desk.cause = cause;
  desk.cause.alive = true;
  // The caller has counted this one.
  desk.cause.number = desk.view.header().bundles_written.load(std::memory_order_relaxed);
  desk.cause.exported_name = name_from_memory;
  if (gnu_get_libc_version != nullptr) desk.cause.glibc_version = gnu_get_libc_version();
  text::Text reason{desk.reason};
  desk.cause.reason = reason.add(cause.reason).view();
  text::Text label{desk.label};
  desk.cause.label = label.add(cause.label).view();
  desk.cause.texts = nullptr;
  desk.destination = destination;
  name_directory(desk, destination.directory);
  const std::string_view session_path{session::g_session.path()};
  const auto slash = session_path.rfind('/');
  text::Text{desk.fallback}.add(slash == std::string_view::npos ? std::string_view{}
                                                                : session_path.substr(0, slash));
  desk.cause.session_directory = desk.fallback;
  desk.report = report;
  desk.symbols_start = 0;
  desk.reported = false;
  desk.lines[0] = '\0';
  desk.error = 0;
  desk.last_written = false;
}

}  // namespace

// --- The desk -----------------------------------------------------------------------------------

Desk* claim_desk(InHook hook, std::uint64_t deadline_ns) noexcept {
  if (g_desk == nullptr || !helper::claim(deadline_ns)) return nullptr;
  own(*g_desk);
  g_desk->hook = hook;
  return g_desk;
}

long run_errand(Desk& desk, void (*errand)(Desk&) noexcept, bool may_be_in_place) noexcept {
  desk.errand = errand;
  return helper::start(desk.stack, run, &desk, desk.in_place, may_be_in_place);
}

std::string_view place_of(const Desk& desk, std::uint64_t number, text::Text& path) noexcept {
  const Written& place = desk.written[number % kMostWritten];
  if (number == 0 || place.number != number) return {};
  path.add(place.in_fallback ? desk.fallback : desk.directories[place.directory]);
  path.add('/').add(place.name);
  return path.truncated() ? std::string_view{} : path.view();
}

// --- What the process asks for ------------------------------------------------------------------

bool prepare(const char* const* environment) noexcept {
  remember_standard_error();
  if (g_desk != nullptr) return true;
  void* const memory = system::map_private(sizeof(Desk));
  if (memory == nullptr) return false;
  if (system::populate(memory, sizeof(Desk)) != 0) std::memset(memory, 0, sizeof(Desk));
  g_desk = static_cast<Desk*>(memory);
  prepare_texts();
  keep_environment(environment, g_desk->command);
  helper::prepare();
  return true;
}

bool finish(InHook, unsigned seconds) noexcept {
  return g_desk == nullptr || helper::finish(calls::monotonic_ns() + seconds * kSecond);
}

bool complete_last(InHook hook, OutcomeKind kind, std::int32_t value, unsigned seconds) noexcept {
  Desk* const desk = claim_last_bundle(hook, 0);
  if (desk == nullptr) return false;
  desk->completion = {kind, value, bundle::repeats_of(desk->view, desk->cause.failure)};
  run_errand(*desk, complete_bundle);
  finish(hook, seconds);
  return true;
}

bool complete_last_by_crash(InHook hook, bool quiet, unsigned seconds) noexcept {
  Desk* const desk = claim_last_bundle(hook, seconds);
  if (desk == nullptr) return false;
  const session::Crash& crash = session::g_session.header().crash;
  desk->view = session::g_session.view();
  desk->symbols_start = 0;
  desk->report.quiet = quiet;
  desk->completion = {OutcomeKind::signal,
                      static_cast<std::int32_t>(crash.signal.load(std::memory_order_relaxed)),
                      bundle::repeats_of(desk->view, desk->cause.failure)};
  desk->completion.crash = &crash;
  desk->completion.crashed = &desk->view;
  desk->completion.exported_name = name_from_memory;
  run_errand(*desk, complete_by_crash);
  finish(hook, seconds);
  return true;
}

std::string_view path_of(InHook hook, std::uint64_t number, std::span<char> buffer,
                         unsigned seconds) noexcept {
  if (buffer.empty()) return {};
  const Desk* const desk = claim_desk(hook, calls::monotonic_ns() + seconds * kSecond);
  if (desk == nullptr) return {};
  text::Text path{buffer.data(), buffer.size()};
  const std::string_view found = place_of(*desk, number, path);
  helper::release();
  return found;
}

// Not where clone is refused: in place the command would be a child of the program.
bool run_from_process(InHook hook, const char* command, unsigned seconds) noexcept {
  Desk* const desk = claim_desk(hook, calls::monotonic_ns() + seconds * kSecond);
  if (desk == nullptr) return false;
  if (!text::expand_command(command, helper::process_id(),
                            desk->last_written ? desk->work.path : "", desk->command.text,
                            sizeof desk->command.text)) {
    helper::release();
    return false;
  }
  desk->command_seconds = seconds;
  const bool started = run_errand(*desk, run_command, false) > 0;
  finish(hook, seconds + 1);
  return started;
}

bundle::Result write_from_process(InHook hook, const bundle::Cause& cause,
                                  const bundle::Destination& destination, const Report& report,
                                  unsigned seconds, bool* texts_written) noexcept {
  if (g_desk == nullptr || system::is_sandboxed()) return bundle::Result::failed;
  const std::uint64_t deadline = calls::monotonic_ns() + seconds * kSecond;
  if (claim_desk(hook, deadline) == nullptr) return bundle::Result::timed_out;
  Desk& desk = *g_desk;
  fill(desk, cause, destination, report);
  if (cause.texts != nullptr) {
    bool whole = false;
    desk.cause.texts = keep_texts(*cause.texts, whole);
    if (texts_written != nullptr) *texts_written = whole;
  }
  const std::uint32_t ticket = take_ticket(desk);
  const long pid = run_errand(desk, write_bundle);
  if (pid < 0 || helper::wait_for(pid, false, deadline)) {
    finish(hook, 0);  // only asks
    return result_of(desk, ticket);
  }
  helper::give_up(pid);
  if (!report.quiet) say(hook, "oomrec: the bundle took too long to write and was given up\n");
  return bundle::Result::timed_out;
}

}  // namespace oomrec::helper
