// Lines of the system's logs, in the formats in which files and tools show them:
//
//   /dev/kmsg          "4,11295,20579972984,-,caller=T42;text", "30,11296,20579973120,-;name[812]:
//   text" dmesg, also -r, -x "[20579.972984] text", "<4>[…] text", "kern  :warn  : […] text" dmesg
//   -T, iso      "[Sun Nov 22 01:18:19 2026] text", "2026-11-22T01:18:19,972984+00:00 text" syslog,
//   journalctl "Nov 22 01:18:19 host kernel: text", also with an ISO 8601 time and
//                      "[20579.972984] host earlyoom[812]: text"
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace oomrec::tools::deaths {

struct LogRecord {
  std::uint64_t realtime_ns = 0;
  std::string text;
  std::string sender = "kernel";  // the program that logged it
  std::string caller = {};        // the kernel's thread or CPU ("T42", "C1"); empty: not logged
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

// Nothing: the line has no known format.
std::optional<LogRecord> log_record(std::string_view line, const LogClock& clock);

// A line of dmesg -H, whose times are minutes, and differences to the line before, the time of
// which is `realtime_ns` (0: unknown): "[Nov17 03:14] text", "[  +0.000285] text". Sets it to this
// line's.
std::optional<LogRecord> human_record(std::string_view line, const LogClock& clock,
                                      std::uint64_t& realtime_ns);

}  // namespace oomrec::tools::deaths
