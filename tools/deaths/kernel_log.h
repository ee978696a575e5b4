// Reads the kernel's log: /dev/kmsg, or else the first readable syslog file.
//
// OOMREC_KERNEL_LOG=FILE names a file to read instead. Its lines may have the format of /dev/kmsg
// ("4,11295,20579972984,-;text"), of syslog ("Nov 22 01:18:19 host kernel: [20579.972984] text", or
// with an ISO 8601 time), or of dmesg ("[20579.972984] text").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace oomrec::tools::deaths {

struct LogRecord {
  std::uint64_t realtime_ns = 0;
  std::string text;
};

struct KernelLog {
  std::vector<LogRecord> records;  // oldest first; empty: the log could not be read

  bool reaches_back_to(std::uint64_t realtime_ns) const {
    return !records.empty() && records.front().realtime_ns <= realtime_ns;
  }
};

// The clock that the times in a log refer to.
struct LogClock {
  std::uint64_t now_realtime_ns = 0;
  std::uint64_t boot_realtime_ns = 0;

  static LogClock now();

  // The possible error of a record's time: NTP does not correct the clock of the kernel's log, and
  // syslog has a resolution of one second.
  std::uint64_t error_ns() const;
};

// A file to read instead of the kernel's log. Empty: the one that OOMREC_KERNEL_LOG names, if set.
// "": always the kernel's own log.
using KernelLogFile = std::optional<std::string>;

// The boot that the log is read for. /dev/kmsg has nothing from earlier boots.
enum class Boot : std::uint8_t { current, earlier };

KernelLog read_kernel_log(const LogClock& clock, Boot boot, const KernelLogFile& file = {});

// Ignores lines that are not from the kernel.
KernelLog parse_kernel_log(std::string_view text, const LogClock& clock);

}  // namespace oomrec::tools::deaths
