// Prepares tasks in WriterState and runs them in the helper.
//
// Reads module memory with process_vm_readv: a module unmapped meanwhile costs a name, not a fault.
#include <sys/syscall.h>

#include <cstring>
#include <new>
#include <span>

#include "common/system/files.h"
#include "common/system/memory.h"
#include "common/system/syscalls.h"
#include "recorder/helper/report.h"
#include "recorder/helper/standard_error.h"
#include "recorder/helper/text_space.h"
#include "recorder/helper/writer_state.h"
#include "recorder/session/writer.h"
#include "recorder/symbols/file_symbols.h"

// Not defined in a musl program.
extern "C" [[gnu::weak]] const char* gnu_get_libc_version() noexcept;

namespace oomrec::helper {

constinit WriterState* g_writer = nullptr;

namespace {

// --- Names --------------------------------------------------------------------------------------

bool name_from_memory(InHook hook, std::uint64_t start, std::uint64_t pc, char* name,
                      std::size_t capacity) noexcept {
  if (g_writer->names.name_at(hook, start, pc, name, capacity)) return true;
  const session::View& view = g_writer->view;
  session::Module module{};
  for (std::uint64_t i = view.count(session::TableId::modules); i-- > 1;) {
    if (!view.read(session::TableId::modules, i, module) || module.start != start) continue;
    char path[1024];
    text::Text words{path};
    words.add(view.string(module.path));
    return !words.truncated() &&
           symbols::name_in_file(hook, path, start, pc - module.base, name, capacity);
  }
  return false;
}

// --- The work, in the helper or in place --------------------------------------------------------

void close_inherited() noexcept {
  if (system::fallible_call(SYS_close_range, 0, 1, 0) == 0 &&
      system::fallible_call(SYS_close_range, 3, ~0U, 0) == 0)
    return;
  constexpr int kMost = 65536;  // Linux < 5.9
  for (int fd = 0; fd < kMost; ++fd)
    if (fd != 2) system::close(fd);
}

// The lines contain the program's own names: replace control characters, so that no terminal obeys
// them.
void write_lines(InHook hook, std::span<char> lines) noexcept {
  for (char& c : lines)
    if ((static_cast<unsigned char>(c) < ' ' && c != '\n') || c == '\x7f') c = '?';
  write_stderr(hook, {lines.data(), lines.size()});
}

// The data now survives the program's end: print the report and let the failing thread go on.
void on_data_written(InHook hook, void* argument) noexcept {
  WriterState& writer = *static_cast<WriterState*>(argument);
  set_result(writer, bundle::Result::written);
  if (!writer.report.quiet && !writer.reported) {
    text::Text lines{writer.lines};
    const verdict::Verdict& verdict = writer.work.verdict;
    if (!writer.report.failure_reported && writer.error == 0 &&
        is_impossible_size(writer.view, writer.cause, verdict)) {
      report_impossible_size(lines, verdict, writer.work.path, writer.working_directory);
    } else {
      if (!writer.report.failure_reported)
        report_failure(hook, lines, writer.view, writer.cause, verdict, writer.work);
      if (writer.error != 0)
        report_fallback_directory(lines, writer.directories[writer.directory], writer.error,
                                  writer.destination.directory);
      report_bundle(lines, writer.work.path, writer.working_directory);
    }
    write_lines(hook, {writer.lines, lines.view().size()});
  }
  writer.reported = true;
  if (!writer.in_place) helper::notify_data_done();
}

void record_bundle(WriterState& writer, bool in_fallback) noexcept {
  WrittenBundle& bundle = writer.written[writer.cause.number % kMostWritten];
  bundle.number = writer.cause.number;
  bundle.directory = writer.directory;
  bundle.in_fallback = in_fallback;
  std::memcpy(bundle.name, writer.work.name, sizeof bundle.name);
}

bundle::Result write_to(WriterState& writer, const char* directory, int& error) noexcept {
  const bundle::Progress progress{on_data_written, &writer};
  writer.destination.directory = directory;
  const bundle::Result result = write(writer.hook, writer.view, writer.cause, writer.destination,
                                      writer.work, error, progress);
  set_result(writer, result);
  writer.last_written = result == bundle::Result::written;
  if (writer.last_written) record_bundle(writer, directory == writer.fallback);
  return result;
}

void write_with_fallback(WriterState& writer) noexcept {
  int error = 0;
  writer.error = 0;
  if (write_to(writer, writer.directories[writer.directory], error) == bundle::Result::written)
    return;

  writer.error = error;
  const bool late = writer.reported;  // the fsync or the rename failed, after the report
  const bool written = writer.fallback[0] != '\0' &&
                       write_to(writer, writer.fallback, error) == bundle::Result::written;
  // on_data_written() has reported a fallback that happened before the data was written.
  if (writer.report.quiet || (!late && (written || writer.report.failure_reported))) return;
  text::Text lines{writer.lines};
  if (!writer.reported)
    report_failure(writer.hook, lines, writer.view, writer.cause, writer.work.verdict, writer.work);
  report_fallback_directory(lines, writer.directories[writer.directory], writer.error,
                            written ? writer.work.path : "");
  write_lines(writer.hook, {writer.lines, lines.view().size()});
}

void write_bundle(WriterState& writer) noexcept {
  const long bytes = system::fallible_call(SYS_getcwd, address(writer.working_directory),
                                           sizeof writer.working_directory);
  if (bytes <= 0) writer.working_directory[0] = '\0';
  write_with_fallback(writer);
}

void complete_bundle(WriterState& writer) noexcept {
  complete(writer.hook, writer.work.path, writer.completion, writer.work);
}

void complete_by_crash(WriterState& writer) noexcept {
  char outcome[32];
  new (&writer.work.verdict)  // constructed in place: too large for a stack frame
      verdict::Verdict(verdict::verdict_of(
          writer.view, writer.cause.trigger, writer.cause.failure, writer.cause.reason,
          bundle::outcome_text(writer.completion.outcome, writer.completion.value, outcome)));
  writer.completion.verdict = &writer.work.verdict;
  if (!writer.report.quiet) {
    text::Text lines{writer.lines};
    lines.add("oomrec: ").add(writer.work.verdict.summary).add('\n');
    write_lines(writer.hook, {writer.lines, lines.view().size()});
  }
  complete_bundle(writer);
}

void run_command(WriterState& writer) noexcept {
  run_command(writer.command, writer.command_seconds);
}

void run(void* argument) noexcept {
  WriterState& writer = *static_cast<WriterState*>(argument);
  if (!writer.in_place) {
    helper::publish_running();
    close_inherited();
  }
  writer.task(writer);
}

// --- Before it ----------------------------------------------------------------------------------

// Claims the writer to complete its last bundle; waits at most `seconds` for a busy helper.
// nullptr: no such bundle, or still busy.
WriterState* claim_last_bundle(InHook hook, unsigned seconds) noexcept {
  WriterState* const writer = claim_writer(hook, system::monotonic_ns() + seconds * kSecondNs);
  if (writer == nullptr || writer->last_written) return writer;
  helper::release();
  return nullptr;
}

void forget_bundles(WriterState& writer) noexcept {
  writer.last_written = false;
  for (WrittenBundle& bundle : writer.written) bundle.number = 0;
}

// After a fork: the recorded bundles are the parent's.
void reset_after_fork(WriterState& writer) noexcept {
  const int self = helper::process_id();
  if (writer.process == self) return;
  writer.process = self;
  forget_bundles(writer);
}

// Stores the bundle's directory; it stays until kDirectories others have been named.
void name_directory(WriterState& writer, std::string_view path) noexcept {
  for (std::uint32_t at = 0; at < kDirectories; ++at) {
    if (path != writer.directories[at]) continue;
    writer.directory = at;
    return;
  }
  writer.directory = (writer.directory + 1) % kDirectories;
  text::Text{writer.directories[writer.directory]}.add(path);
  for (WrittenBundle& bundle : writer.written)
    if (bundle.directory == writer.directory) bundle.number = 0;
}

void fill(WriterState& writer, const bundle::Cause& cause, const bundle::Destination& destination,
          const ReportOptions& report) noexcept {
  writer.view = session::g_session.view();
  writer.cause = cause;
  writer.cause.alive = true;
  // The caller has counted this one.
  writer.cause.number = writer.view.header().bundles_written.load(std::memory_order_relaxed);
  writer.cause.exported_name = name_from_memory;
  if (gnu_get_libc_version != nullptr) writer.cause.glibc_version = gnu_get_libc_version();
  text::Text reason{writer.reason};
  writer.cause.reason = reason.add(cause.reason).view();
  text::Text label{writer.label};
  writer.cause.label = label.add(cause.label).view();
  writer.cause.texts = nullptr;
  writer.destination = destination;
  name_directory(writer, destination.directory);
  const std::string_view session_path{session::g_session.path()};
  const auto slash = session_path.rfind('/');
  text::Text{writer.fallback}.add(slash == std::string_view::npos ? std::string_view{}
                                                                  : session_path.substr(0, slash));
  writer.cause.session_directory = writer.fallback;
  writer.report = report;
  writer.names.forget();
  writer.reported = false;
  writer.lines[0] = '\0';
  writer.error = 0;
  writer.last_written = false;
}

}  // namespace

// --- The writer's state -------------------------------------------------------------------------

WriterState* claim_writer(InHook hook, std::uint64_t deadline_ns) noexcept {
  if (g_writer == nullptr || !helper::claim(deadline_ns)) return nullptr;
  reset_after_fork(*g_writer);
  g_writer->hook = hook;
  return g_writer;
}

long run_task(WriterState& writer, void (*task)(WriterState&) noexcept,
              Fallback fallback) noexcept {
  writer.task = task;
  return helper::start(writer.stack, run, &writer, writer.in_place, fallback,
                       session::g_session.header().helper_pid);
}

std::string_view bundle_path(const WriterState& writer, std::uint64_t number,
                             text::Text& path) noexcept {
  const WrittenBundle& bundle = writer.written[number % kMostWritten];
  if (number == 0 || bundle.number != number) return {};
  path.add(bundle.in_fallback ? writer.fallback : writer.directories[bundle.directory]);
  path.add('/').add(bundle.name);
  return path.truncated() ? std::string_view{} : path.view();
}

// --- Called by the process ----------------------------------------------------------------------

bool prepare(const char* const* environment) noexcept {
  record_standard_error();
  if (g_writer != nullptr) return true;
  void* const memory = system::map_private(sizeof(WriterState));
  if (memory == nullptr) return false;
  if (system::populate(memory, sizeof(WriterState)) != 0)
    std::memset(memory, 0, sizeof(WriterState));
  g_writer = static_cast<WriterState*>(memory);
  reserve_texts();
  keep_environment(environment, g_writer->command);
  helper::prepare();
  return true;
}

bool finish(InHook, unsigned seconds) noexcept {
  return g_writer == nullptr || helper::finish(system::monotonic_ns() + seconds * kSecondNs);
}

bool forget_bundles(InHook hook, unsigned seconds) noexcept {
  if (g_writer == nullptr) return true;
  WriterState* const writer = claim_writer(hook, system::monotonic_ns() + seconds * kSecondNs);
  if (writer == nullptr) return false;
  forget_bundles(*writer);
  helper::release();
  return true;
}

bool complete_last(InHook hook, OutcomeKind kind, std::int32_t value, unsigned seconds) noexcept {
  WriterState* const writer = claim_last_bundle(hook, 0);
  if (writer == nullptr) return false;
  writer->completion = bundle::completion_of(writer->view, writer->cause.failure, kind, value);
  run_task(*writer, complete_bundle);
  finish(hook, seconds);
  return true;
}

bool complete_last_by_crash(InHook hook, const ReportOptions& report, unsigned seconds) noexcept {
  WriterState* const writer = claim_last_bundle(hook, seconds);
  if (writer == nullptr) return false;
  const session::Crash& crash = session::g_session.header().crash;
  writer->view = session::g_session.view();
  writer->names.forget();
  writer->report = report;
  writer->completion = bundle::completion_of(
      writer->view, writer->cause.failure, OutcomeKind::signal,
      static_cast<std::int32_t>(crash.signal.load(std::memory_order_relaxed)));
  writer->completion.crash = &crash;
  writer->completion.crash_session = &writer->view;
  writer->completion.exported_name = name_from_memory;
  run_task(*writer, complete_by_crash);
  finish(hook, seconds);
  return true;
}

std::string_view path_of(InHook hook, std::uint64_t number, std::span<char> buffer,
                         unsigned seconds) noexcept {
  if (buffer.empty()) return {};
  const WriterState* const writer =
      claim_writer(hook, system::monotonic_ns() + seconds * kSecondNs);
  if (writer == nullptr) return {};
  text::Text path{buffer.data(), buffer.size()};
  const std::string_view found = bundle_path(*writer, number, path);
  helper::release();
  return found;
}

// No fallback if clone fails: in place, the command would become a child of the program.
bool run_from_process(InHook hook, const char* command, unsigned seconds) noexcept {
  WriterState* const writer = claim_writer(hook, system::monotonic_ns() + seconds * kSecondNs);
  if (writer == nullptr) return false;
  if (!set_command(command, helper::process_id(), writer->last_written ? writer->work.path : "",
                   writer->command)) {
    helper::release();
    return false;
  }
  writer->command_seconds = seconds;
  const bool started = run_task(*writer, run_command, Fallback::none) > 0;
  finish(hook, seconds + 1);
  return started;
}

bundle::Result write_from_process(InHook hook, const bundle::Cause& cause,
                                  const bundle::Destination& destination,
                                  const ReportOptions& report, unsigned seconds,
                                  bool* texts_written) noexcept {
  if (g_writer == nullptr || system::is_sandboxed()) return bundle::Result::failed;
  const std::uint64_t deadline = system::monotonic_ns() + seconds * kSecondNs;
  if (claim_writer(hook, deadline) == nullptr) return bundle::Result::timed_out;
  WriterState& writer = *g_writer;
  fill(writer, cause, destination, report);
  if (cause.texts != nullptr) {
    bool whole = false;
    writer.cause.texts = keep_texts(*cause.texts, whole);
    if (texts_written != nullptr) *texts_written = whole;
  }
  const std::uint32_t ticket = take_ticket(writer);
  const long pid = run_task(writer, write_bundle);
  if (pid < 0 || helper::wait_for(pid, Until::data_done, deadline)) {
    finish(hook, 0);  // only polls
    return result_of(writer, ticket);
  }
  helper::kill_helper(pid);
  if (!report.quiet) {
    char buffer[128];
    text::Text line{buffer};
    line.add("oomrec: no bundle: it was not written within ").number(seconds);
    write_stderr(hook, line.add(" s; --bundle-seconds allows more\n").view());
  }
  return bundle::Result::timed_out;
}

// An exception's texts on their way into a bundle: copies them for the helper, and adds them to a
// bundle that is already written.
namespace {

constinit TextSpace* g_texts = nullptr;
constinit bool g_texts_open = false;  // made accessible

// Only with the claim. nullptr: no memory.
TextSpace* text_space() noexcept {
  if (g_texts != nullptr && !g_texts_open)
    g_texts_open = system::commit_reserved(g_texts, sizeof(TextSpace));
  return g_texts_open ? g_texts : nullptr;
}

void write_texts(WriterState& writer) noexcept {
  if (bundle::complete_exception(writer.hook, writer.texts_to, g_texts->texts(), writer.work))
    set_result(writer, bundle::Result::written);
}

}  // namespace

void reserve_texts() noexcept {
  g_texts = static_cast<TextSpace*>(system::reserve_private(sizeof(TextSpace)));
}

const text::ExceptionTexts* keep_texts(const text::ExceptionTexts& texts, bool& whole) noexcept {
  TextSpace* const space = text_space();
  whole = space != nullptr && space->copy(texts);
  return space != nullptr ? &space->texts() : nullptr;
}

bool complete_texts_of(InHook hook, std::uint64_t number, const text::ExceptionTexts& texts,
                       unsigned seconds) noexcept {
  const std::uint64_t deadline = system::monotonic_ns() + seconds * kSecondNs;
  WriterState* const writer = claim_writer(hook, deadline);
  if (writer == nullptr) return false;
  TextSpace* const space = text_space();
  const auto is_written = [&]() noexcept {
    text::Text path{space->path};
    return !bundle_path(*writer, number, path).empty();
  };
  if (space == nullptr || !is_written()) {
    helper::release();
    return false;
  }
  const bool whole = space->copy(texts);
  writer->texts_to = space->path;
  const std::uint32_t ticket = take_ticket(*writer);
  const long pid = run_task(*writer, write_texts);
  if (pid > 0) helper::wait_for(pid, Until::end, deadline);
  return whole && result_of(*writer, ticket) == bundle::Result::written;
}

}  // namespace oomrec::helper
