#include "tools/bundles/store/parent_signal.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <optional>
#include <string>
#include <string_view>

#include "common/session/notable.h"
#include "common/text/own_code.h"
#include "common/text/text.h"
#include "tools/base/error.h"
#include "tools/base/text.h"
#include "tools/bundles/store/process_tree.h"
#include "tools/recording/stack_text/stack_text.h"
#include "tools/recording/symbolize/locations.h"

namespace oomrec::tools::bundles {
namespace {

namespace fs = std::filesystem;
using recording::Location;
using recording::LocationId;
using recording::Recording;
using session::Header;
using session::SentSignal;
using session::TableId;

// A supervisor acts at its limit or shortly before; a worker that it ends for another reason is
// rarely there.
constexpr std::uint64_t kAtLimitPercent = 95;

// A master that loses a worker soon ends the others, whatever they hold.
constexpr std::uint64_t kReactsWithinNs = 10'000'000'000;

// A worker that grows allocates more often; one that has grown and hangs does not.
constexpr std::uint64_t kAtWorkNs = 500'000'000;

// A limit for each child, in the arguments of its parent.
struct ChildLimit {
  std::string option;  // "--memory-limit 300MB"
  std::uint64_t bytes;
};

enum class Decides : std::uint8_t { itself, for_caller };

// Why it ends a child: for what the child holds; because it stops itself; or for another reason,
// which may follow from a lack of memory.
enum class Reason : std::uint8_t { memory, stop, other };

// Code of a supervisor that ends its children for this reason only.
struct Sender {
  std::string_view file, function;
  int signal;  // 0: any
  std::string_view words;
  Reason reason;
  Decides decides;  // whether its line says more than the program's own
};
constexpr auto kSenders = std::to_array<Sender>({
    // Nanny.memory_monitor() asks this thread for it, and so does a worker's failed start. At a
    // shutdown a nanny sends a message, and SIGKILL to a worker that does not obey.
    {"/distributed/process.py", "_watch_message_queue", SIGTERM,
     "as Dask's nanny does when a worker exceeds its memory limit", Reason::memory,
     Decides::for_caller},
    {"/gunicorn/arbiter.py", "murder_workers", 0,
     "as gunicorn does when a worker has not answered in time (--timeout)", Reason::other,
     Decides::itself},
    {"/gunicorn/arbiter.py", "manage_workers", 0, "as gunicorn does when it has too many workers",
     Reason::other, Decides::itself},
    {"/gunicorn/arbiter.py", "stop", 0, "as gunicorn does when it stops", Reason::stop,
     Decides::itself},
    {"/uvicorn/supervisors/multiprocess.py", "keep_subprocess_alive", SIGKILL,
     "as uvicorn does when a worker has not answered in time (--timeout-worker-healthcheck)",
     Reason::other, Decides::itself},
    {"/uvicorn/supervisors/multiprocess.py", "restart_all", 0,
     "as uvicorn does when it restarts its workers", Reason::other, Decides::itself},
    {"/uvicorn/supervisors/multiprocess.py", "terminate_all", 0, "as uvicorn does when it stops",
     Reason::stop, Decides::itself},
    {"/billiard/pool.py", "on_hard_timeout", 0, "as Celery does at a task's time limit",
     Reason::other, Decides::itself},
    {"/multiprocessing/pool.py", "_terminate_pool", 0, "as a pool does at its end", Reason::other,
     Decides::for_caller},
    {"/multiprocessing/util.py", "_exit_function", 0, "as Python does at its own end",
     Reason::other, Decides::for_caller},
    {"/concurrent/futures/process.py", "", 0, "as an executor does at its end", Reason::other,
     Decides::for_caller},
    {"/subprocess.py", "run", 0, "as subprocess.run does when the time is up", Reason::other,
     Decides::for_caller},
});

// Sizes as Dask reads them: decimal without an "i", and up to 1 a part of the machine. Empty: no
// limit, or one that only the program knows ("auto").
std::optional<std::uint64_t> bytes_of(std::string_view text, std::uint64_t ram_bytes) {
  struct Unit {
    std::string_view name;
    double bytes;
  };
  constexpr std::array<Unit, 14> kUnits = {{{"", 1},
                                            {"B", 1},
                                            {"K", 1e3},
                                            {"KB", 1e3},
                                            {"M", 1e6},
                                            {"MB", 1e6},
                                            {"G", 1e9},
                                            {"GB", 1e9},
                                            {"T", 1e12},
                                            {"TB", 1e12},
                                            {"KIB", 0x1p10},
                                            {"MIB", 0x1p20},
                                            {"GIB", 0x1p30},
                                            {"TIB", 0x1p40}}};
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || !(number > 0)) return std::nullopt;
  std::string unit;
  for (const char* at = end; at != text.data() + text.size(); ++at)
    if (*at != ' ') unit += static_cast<char>(*at >= 'a' && *at <= 'z' ? *at - 'a' + 'A' : *at);
  for (const Unit& known : kUnits) {
    if (known.name != unit) continue;
    const bool is_part = unit.empty() && number <= 1;
    const double bytes = number * (is_part ? static_cast<double>(ram_bytes) : known.bytes);
    if (bytes < 1 || bytes >= 0x1p63) return std::nullopt;
    return static_cast<std::uint64_t>(bytes);
  }
  return std::nullopt;
}

std::optional<ChildLimit> limit_in_arguments(const Recording& parent) {
  constexpr std::string_view kOption = "--memory-limit";
  const std::vector<std::string> arguments = parent.arguments();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::string_view value = arguments[i];
    if (!value.starts_with(kOption)) continue;
    value.remove_prefix(kOption.size());
    if (value.empty() && i + 1 < arguments.size())
      value = arguments[i + 1];
    else if (value.starts_with('='))
      value.remove_prefix(1);
    else
      continue;
    if (const auto bytes = bytes_of(value, parent.header().ram_bytes))
      return ChildLimit{fmt::format("{} {}", kOption, value), *bytes};
  }
  return std::nullopt;
}

// The Python lines from which the signal was sent, innermost first. Native frames are left out:
// their names would take seconds to find.
std::vector<Location> python_stack(const Recording& parent, std::uint32_t node) {
  recording::Locations locations{parent, {}};
  std::vector<Location> stack;
  parent.view().walk(node, [&](std::uint64_t frame) {
    if (session::kind_of(frame) != session::FrameKind::python) return;
    for (const LocationId id : locations.of_frame(frame)) stack.push_back(locations[id]);
  });
  return stack;
}

struct KnownSender {
  const Sender* sender = nullptr;  // null: none is on the stack
  const Location* location = nullptr;
};
KnownSender sender_in(const std::vector<Location>& stack, int signal) {
  for (const Sender& sender : kSenders)
    for (const Location& location : stack)
      if ((sender.signal == 0 || sender.signal == signal) && location.file.ends_with(sender.file) &&
          location.function.ends_with(sender.function))
        return {&sender, &location};
  return {};
}

// The last line of a script that pip made to start a package: gunicorn's, not one that decides.
bool is_start_script(const Location& location) {
  return location.function == "<module>" && location.file.find("/bin/") != location.file.npos;
}

// The line that is known to decide it, else the innermost one that is the program's own, else
// of a package: who decided to send it.
std::string sender_line(const std::vector<Location>& stack, const KnownSender& known) {
  const auto found = [&](auto is_wanted) {
    const auto at = std::ranges::find_if(stack, [&](const Location& location) {
      return is_wanted(std::string_view{location.file}) && !is_start_script(location);
    });
    return at != stack.end() ? &*at : nullptr;
  };
  const Location* line = known.sender != nullptr && known.sender->decides == Decides::itself
                             ? known.location
                             : found(text::is_programs_own);
  if (line == nullptr)
    line = found([](std::string_view file) { return file.find("-packages/") != file.npos; });
  if (line == nullptr && !stack.empty()) line = &stack.front();
  if (line == nullptr) return {};
  return fmt::format(" from {}:{} {}", printable(text::base_name(line->file)), line->line,
                     printable(line->function));
}

// Those sent to the child while it lived, in the order of time. Pids are reused: the recorded end
// of the child, if the parent waited for it, is the latest.
std::vector<SentSignal> signals_to(const Header& child, const Recording& parent) {
  std::uint64_t end_ns = session::kUnlimited;
  for (const session::EndedChild& ended : parent.header().ended)
    if (ended.pid == child.pid && ended.time_ns > child.start_monotonic_ns)
      end_ns = std::min(end_ns, ended.time_ns.load());
  std::vector<SentSignal> signals;
  for (const auto& sent : session::entries<SentSignal>(parent.view(), TableId::sent_signals))
    if (sent.pid == child.pid && sent.time_ns > child.start_monotonic_ns && sent.time_ns <= end_ns)
      signals.push_back(sent);
  return signals;
}

// Another child that the parent ended from the same line when it was as large, before it started
// this one: a pool that ends all its children at once has no limit for them. Nothing: none.
std::optional<SentSignal> alike(const SentSignal& sent, const Header& child,
                                const Recording& parent) {
  const auto is_near = [](std::uint64_t a, std::uint64_t b) {
    return std::max(a, b) - std::min(a, b) <= std::max(a, b) / 10;
  };
  if (sent.node == 0 || sent.resident_bytes < session::kNotableBytes) return std::nullopt;
  for (const auto& other : session::entries<SentSignal>(parent.view(), TableId::sent_signals))
    if (other.node == sent.node && other.pid != sent.pid &&
        other.time_ns < child.start_monotonic_ns &&
        is_near(other.resident_bytes, sent.resident_bytes))
      return other;
  return std::nullopt;
}

// A program whose only signals to its children say that their time is up.
bool is_timeout(const Recording& parent) {
  return text::base_name(parent.text(parent.header().executable)) == "timeout";
}

// What the parent's recording says of the first signal: it may have sent SIGKILL only because the
// child had not obeyed.
deaths::ParentSignal explained(const SentSignal& sent, const Header& child, const Recording& parent,
                               bool was_growing) {
  const std::vector<Location> stack = python_stack(parent, sent.node);
  const KnownSender known = sender_in(stack, sent.signal);
  const Sender* const sender = known.sender;
  const std::optional<ChildLimit> limit = limit_in_arguments(parent);
  const bool is_at_limit = limit && sent.resident_bytes >= limit->bytes / 100 * kAtLimitPercent;
  const bool is_known = is_at_limit || sender != nullptr || is_timeout(parent);
  const bool was_at_work = child.last_tick_ns.load() + kAtWorkNs >= sent.time_ns;
  const std::optional<SentSignal> other =
      was_growing && was_at_work && !is_known ? alike(sent, child, parent) : std::nullopt;
  std::string evidence =
      fmt::format("its parent {} sent {}{}", parent.header().pid,
                  sent.signal == SIGTERM ? "SIGTERM" : "SIGKILL", sender_line(stack, known));
  if (sent.resident_bytes != 0)
    evidence += fmt::format(" when it had {} resident", size_text(sent.resident_bytes));
  if (limit && sent.resident_bytes != 0)
    evidence += fmt::format(", {} % of the parent's {}", sent.resident_bytes * 100 / limit->bytes,
                            printable(limit->option));
  if (sender != nullptr) evidence += fmt::format(", {}", sender->words);
  if (is_timeout(parent)) evidence += ": its time was up";
  if (other)
    evidence += fmt::format(" and was growing; it had ended {} there, too, at {}", other->pid,
                            size_text(other->resident_bytes));
  return {.for_memory = is_at_limit || (sender != nullptr && sender->reason == Reason::memory),
          .flags = sender != nullptr && sender->reason == Reason::stop ? session::kSenderStops
                   : is_known                                          ? 0
                   : other ? session::kSenderPerhapsForMemory
                           : session::kSenderReasonUnknown,
          .evidence = evidence};
}

}  // namespace

deaths::DeathObservation with_signal_from_parent(deaths::DeathObservation observed,
                                                 const Header& child,
                                                 const std::vector<fs::path>& directories,
                                                 bool was_growing) {
  const int signal = observed.wait_status && WIFSIGNALED(*observed.wait_status)
                         ? WTERMSIG(*observed.wait_status)
                         : 0;
  if (observed.sender != 0 || (signal != SIGTERM && signal != SIGKILL)) return observed;
  for_each_recording(directories, [&](const fs::path& path, const Header& header) {
    if (observed.sender != 0 || !is_parent(header, child)) return;
    try {
      const Recording parent{path};
      const std::vector<SentSignal> signals = signals_to(child, parent);
      const bool has_sent_it =
          std::ranges::any_of(signals, [&](const auto& sent) { return sent.signal == signal; });
      if (!has_sent_it) return;
      observed.sender = header.pid;
      observed.parent_signal = explained(signals.front(), child, parent, was_growing);
      observed.parent_signal.program = parent.text(parent.header().executable);
      observed.parent_signal.after_another = lost_another(header, child, kReactsWithinNs);
    } catch (const Error&) {
      return;  // deleted meanwhile
    }
  });
  return observed;
}

}  // namespace oomrec::tools::bundles
