#include "tools/service/watch/pressure.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <compare>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>

#include "common/limits/stalls.h"
#include "common/system/files.h"
#include "tools/base/terminal.h"
#include "tools/base/text.h"
#include "tools/bundles/store/writing.h"
#include "tools/deaths/current_health.h"
#include "tools/recording/reading/recording.h"

namespace oomrec::tools::service {
namespace {

using namespace std::chrono_literals;

constexpr auto kBetweenBundles = 5min;  // of the same process
constexpr auto kMostLook = 200ms;       // at the pages of a process that waits for memory
constexpr auto kBetweenSearches = 10s;  // for the process that waits

// The kernel has just reported the machine's pressure: its averages may still be low.
constexpr limit::MachinePressure kReported{10'000, 0};

// How much a process waits for memory; the default: it does not.
struct Wait {
  bool of_its_own = false;  // its own cgroup says so, too
  std::uint64_t faults = 0;

  auto operator<=>(const Wait&) const = default;
};

Wait wait_of(const session::Stalls& stalls) {
  if (!limit::is_stalled(stalls, kReported)) return {};
  return {limit::is_stalled(stalls, {}), limit::faults_per_second(stalls)};
}

RecordedProcess* longest_waiting(RecordedProcesses& processes) {
  Wait most;
  RecordedProcess* found = nullptr;
  for (auto& [path, process] : processes) {
    const Wait wait = wait_of(process.levels.stalls());
    if (wait <= most) continue;
    most = wait;
    found = &process;
  }
  return found;
}

bundles::WriteResult write_bundle_of(const RecordedProcess& process) {
  recording::Recording recording{process.session.path};
  recording.enter_look_within(process.session.pid, kMostLook);
  const auto health = deaths::current_health(recording.view());
  bundle::Cause cause;
  cause.trigger = Trigger::pressure;
  cause.health = health.get();
  return bundles::write_bundle(recording, cause, recording.text(recording.header().dump_directory));
}

bool is_within(PressureBundles::Clock::time_point then, PressureBundles::Clock::time_point now,
               std::chrono::seconds seconds) {
  return then != PressureBundles::Clock::time_point{} && now - then < seconds;
}

}  // namespace

PressureBundles::PressureBundles(std::function<void(const std::string&)> report, Listener& listener)
    : report_(std::move(report)), listener_(listener) {}

void PressureBundles::on_pressure(RecordedProcesses& processes) {
  const auto now = Clock::now();
  if (is_within(last_search_, now, kBetweenSearches)) return;
  last_search_ = now;
  RecordedProcess* const found = longest_waiting(processes);
  if (found == nullptr) return;
  RecordedProcess& process = *found;
  if (is_within(process.last_pressure_bundle, now, kBetweenBundles))
    return listener_.on_memory_pressure(process.session.path, {});
  process.last_pressure_bundle = now;
  const bundles::WriteResult written = write_bundle_of(process);
  if (written.bundle.empty())
    remark(written.problem);
  else
    report_(fmt::format("process {}: {}: {}", process.session.pid, written.summary,
                        printable(written.bundle.string())));
  listener_.on_memory_pressure(process.session.path, written.bundle);
}

namespace {

constexpr std::string_view kTrigger = "some 200000 2000000";

std::string pressure_file() { return std::string{system::g_roots.proc} + "/pressure/memory"; }

// RFC 4648, without line breaks. Decodes up to the first other character.
std::string from_base64(std::string_view text) {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  unsigned bits = 0, pending = 0;
  for (const char letter : text) {
    const std::size_t value = kLetters.find(letter);
    if (value == kLetters.npos) break;
    pending = pending << 6 | static_cast<unsigned>(value);
    bits += 6;
    if (bits >= 8) bytes += static_cast<char>(pending >> (bits -= 8) & 0xff);
  }
  return bytes;
}

}  // namespace

PressureTrigger::PressureTrigger() {
  const char* const named = std::getenv("MEMORY_PRESSURE_WATCH");
  if (named != nullptr && *named != '\0') {
    disabled_ = std::string_view{named} == "/dev/null" || !open_named(named);
    return;
  }
  descriptor_ = open(pressure_file().c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ >= 0 && write(descriptor_, kTrigger.data(), kTrigger.size() + 1) < 0)
    descriptor_ = -1;
  events_ = POLLPRI;
}

// Opens a PSI file, a FIFO or a socket, and writes $MEMORY_PRESSURE_WRITE to it first.
bool PressureTrigger::open_named(const char* path) {
  struct stat status {};
  if (stat(path, &status) != 0) return false;
  stream_ = S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode);
  events_ = stream_ ? POLLIN : POLLPRI;
  if (S_ISSOCK(status.st_mode)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (std::strlen(path) >= sizeof address.sun_path) return false;
    std::strcpy(address.sun_path, path);
    descriptor_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (connect(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      descriptor_ = -1;
  } else {
    descriptor_ = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
  }
  if (descriptor_ < 0) return false;
  const char* const encoded = std::getenv("MEMORY_PRESSURE_WRITE");
  const std::string first = encoded != nullptr ? from_base64(encoded) : std::string{};
  return S_ISFIFO(status.st_mode) || first.empty() ||
         write(descriptor_, first.data(), first.size()) == static_cast<ssize_t>(first.size());
}

void PressureTrigger::acknowledge() const {
  char bytes[256];
  if (!stream_) return;
  while (read(descriptor_, bytes, sizeof bytes) == static_cast<ssize_t>(sizeof bytes)) continue;
}

bool PressureTrigger::is_high() const {
  constexpr std::string_view kSome = "some avg10=";
  constexpr double kHigh = 10;
  if (disabled_) return false;
  std::ifstream file{pressure_file()};
  std::string line;
  std::getline(file, line);
  if (!line.starts_with(kSome)) return false;
  std::string_view rest = std::string_view{line}.substr(kSome.size());
  return take_number<double>(rest).value_or(0) >= kHigh;
}

}  // namespace oomrec::tools::service
