#include "tools/deaths/kernel_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <optional>

#include "common/system/text.h"
#include "tools/base/number.h"

namespace oomrec::tools::deaths {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kDay = 24 * 3600 * kSecond;
constexpr std::size_t kMostBytes = std::size_t{4} << 20;  // read from the end of a file
constexpr std::array<const char*, 2> kFiles = {"/var/log/kern.log", "/var/log/messages"};

bool take(std::string_view& text, std::uint64_t& value) {
  const auto number = take_number<std::uint64_t>(text);
  if (number) value = *number;
  return number.has_value();
}

bool take(std::string_view& text, char expected) {
  if (!text.starts_with(expected)) return false;
  text.remove_prefix(1);
  return true;
}

// "4,11295,20579972984,-;text"
std::optional<LogRecord> kmsg_record(std::string_view line, const LogClock& clock) {
  std::uint64_t priority = 0, sequence = 0, microseconds = 0;
  if (!take(line, priority) || !take(line, ',') || !take(line, sequence) || !take(line, ',') ||
      !take(line, microseconds) || !take(line, ',')) {
    return std::nullopt;
  }
  const std::size_t text = line.find(';');
  if (text == line.npos) return std::nullopt;
  return LogRecord{clock.boot_realtime_ns + microseconds * 1000,
                   std::string{line.substr(text + 1)}};
}

// "[20579.972984] text": returns the nanoseconds since boot, and leaves the text in `line`.
std::optional<std::uint64_t> take_brackets(std::string_view& line) {
  std::string_view rest = line;
  std::uint64_t seconds = 0, fraction = 0;
  if (!take(rest, '[')) return std::nullopt;
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  if (!take(rest, seconds) || !take(rest, '.') || !take(rest, fraction) || !take(rest, ']'))
    return std::nullopt;
  take(rest, ' ');
  line = rest;
  return seconds * kSecond + fraction * 1000;
}

enum class Zone : std::uint8_t { local, utc };

std::optional<std::uint64_t> realtime_of(std::tm time, Zone zone) {
  const std::time_t seconds = zone == Zone::local ? std::mktime(&time) : timegm(&time);
  if (seconds < 0) return std::nullopt;
  return static_cast<std::uint64_t>(seconds) * kSecond;
}

// "Nov 22 01:18:19 ": local time, without a year. Assumes the latest such day that is not in the
// future.
std::optional<std::uint64_t> take_traditional_time(std::string_view& line, const LogClock& clock) {
  constexpr std::size_t kBytes = 16;
  if (line.size() < kBytes) return std::nullopt;
  const std::string text{line.substr(0, kBytes)};
  const auto now = static_cast<std::time_t>(clock.now_realtime_ns / kSecond);
  std::tm time{};
  std::tm today{};
  const char* const end = strptime(text.c_str(), "%b %d %H:%M:%S ", &time);
  if (end != text.c_str() + kBytes || localtime_r(&now, &today) == nullptr) return std::nullopt;
  time.tm_year = today.tm_year;
  time.tm_isdst = -1;
  auto realtime = realtime_of(time, Zone::local);
  if (realtime && *realtime > clock.now_realtime_ns + kDay) {
    --time.tm_year;
    time.tm_isdst = -1;
    realtime = realtime_of(time, Zone::local);
  }
  line.remove_prefix(kBytes);
  return realtime;
}

// "2026-11-22T01:18:19.123456+00:00 "
std::optional<std::uint64_t> take_iso_time(std::string_view& line) {
  const std::size_t blank = line.find(' ');
  if (blank == line.npos) return std::nullopt;
  const std::string text{line.substr(0, blank)};
  std::tm time{};
  const char* rest = strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &time);
  if (rest == nullptr) return std::nullopt;
  if (*rest == '.') rest += 1 + std::string_view{rest + 1}.find_first_not_of("0123456789");
  const std::string_view zone{rest};
  const auto local = realtime_of(time, Zone::utc);
  if (!local) return std::nullopt;
  line.remove_prefix(blank + 1);
  if (zone.size() != 6) return local;  // "Z"
  const std::uint64_t minutes =
      system::number_in(zone.substr(1)) * 60 + system::number_in(zone.substr(4));
  const std::uint64_t ahead = minutes * 60 * kSecond;
  return zone.front() == '-' ? *local + ahead : *local - ahead;
}

// "Nov 22 01:18:19 host kernel: [20579.972984] text"
std::optional<LogRecord> syslog_record(std::string_view line, const LogClock& clock) {
  auto time = take_traditional_time(line, clock);
  if (!time) time = take_iso_time(line);
  constexpr std::string_view kKernel = " kernel: ";
  const std::size_t kernel = line.find(kKernel);
  if (!time || kernel == line.npos || line.find(' ') != kernel) return std::nullopt;
  line.remove_prefix(kernel + kKernel.size());
  take_brackets(line);
  return LogRecord{*time, std::string{line}};
}

std::optional<LogRecord> record_of(std::string_view line, const LogClock& clock) {
  if (auto record = kmsg_record(line, clock)) return record;
  if (const auto since_boot = take_brackets(line))
    return LogRecord{clock.boot_realtime_ns + *since_boot, std::string{line}};
  return syslog_record(line, clock);
}

class File {
 public:
  explicit File(const char* path)
      : descriptor_(open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY)) {}
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  bool is_device() const {
    struct stat status {};
    return fstat(descriptor_, &status) == 0 && S_ISCHR(status.st_mode);
  }

  // Returns the number of bytes; 0 at the end.
  std::size_t read_some(char* to, std::size_t bytes) const {
    while (true) {
      const ssize_t got = read(descriptor_, to, bytes);
      if (got >= 0) return static_cast<std::size_t>(got);
      // EPIPE: the kernel overwrote the record before we read it. The next read returns the next
      // one.
      if (errno != EINTR && errno != EPIPE) return 0;
    }
  }

  void skip_to_last(std::size_t count) const {
    const off_t bytes = lseek(descriptor_, 0, SEEK_END);
    const auto kept = static_cast<off_t>(count);
    lseek(descriptor_, bytes > kept ? bytes - kept : 0, SEEK_SET);
  }

 private:
  int descriptor_;
};

// A device returns one record per read: a line, followed by lines with its properties, which we
// drop.
std::string text_of(const File& file) {
  constexpr std::size_t kRecordBytes = 8192;
  std::string text;
  std::string part(kRecordBytes, '\0');
  const bool device = file.is_device();
  if (!device) file.skip_to_last(kMostBytes);
  while (const std::size_t got = file.read_some(part.data(), part.size())) {
    const std::string_view bytes{part.data(), got};
    text += device ? bytes.substr(0, bytes.find('\n')) : bytes;
    if (device) text += '\n';
  }
  return text;
}

std::uint64_t now_ns(clockid_t clock) {
  struct timespec now {};
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * kSecond + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

LogClock LogClock::now() {
  // Like the log's clock, the monotonic clock stops while the machine sleeps.
  const std::uint64_t realtime = now_ns(CLOCK_REALTIME);
  return {realtime, realtime - now_ns(CLOCK_MONOTONIC)};
}

std::uint64_t LogClock::error_ns() const {
  constexpr std::uint64_t kDrift = 10'000;  // at most one part in 10,000
  return 2 * kSecond + (now_realtime_ns - boot_realtime_ns) / kDrift;
}

KernelLog parse_kernel_log(std::string_view text, const LogClock& clock) {
  KernelLog log;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (auto record = record_of(line, clock)) log.records.push_back(std::move(*record));
  }
  return log;
}

KernelLog read_kernel_log(const LogClock& clock, Boot boot, const KernelLogFile& file) {
  std::vector<const char*> paths{kFiles.begin(), kFiles.end()};
  if (boot == Boot::current) paths.insert(paths.begin(), "/dev/kmsg");
  const char* const named = file ? file->c_str() : std::getenv("OOMREC_KERNEL_LOG");
  if (named != nullptr && !(file && file->empty())) paths = {named};
  for (const char* const path : paths) {
    KernelLog log = parse_kernel_log(text_of(File{path}), clock);
    if (!log.records.empty()) return log;
  }
  return {};
}

}  // namespace oomrec::tools::deaths
