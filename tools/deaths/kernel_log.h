// The kernel's log: /dev/kmsg, else the first of the files that syslog keeps which can be read.
//
// OOMREC_KERNEL_LOG=FILE names a file to read in place of all of them. It may hold records as
// /dev/kmsg gives them ("4,11295,20579972984,-;text"), lines as syslog keeps them ("Nov 22 01:18:19
// host kernel: [20579.972984] text", or with an ISO 8601 time), or as dmesg prints them
// ("[20579.972984] text").
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace oomrec::tools::deaths {

struct LogRecord {
  std::uint64_t realtime_ns = 0;
  std::string text;
};

struct KernelLog {
  std::vector<LogRecord> records;  // the oldest first; none: it could not be read

  bool reaches_back_to(std::uint64_t realtime_ns) const {
    return !records.empty() && records.front().realtime_ns <= realtime_ns;
  }
};

// What the times in a log are measured by.
struct LogClock {
  std::uint64_t now_realtime_ns = 0;
  std::uint64_t boot_realtime_ns = 0;

  static LogClock now();

  // By how much a record's time may be wrong: the kernel's log has a clock of its own, that nobody
  // corrects, and syslog tells seconds.
  std::uint64_t error_ns() const;
};

// `this_boot`: the log is to tell of this boot; else /dev/kmsg, which begins with it, is left out.
KernelLog read_kernel_log(const LogClock& clock, bool this_boot);

// Its lines, those of the kernel only.
KernelLog parse_kernel_log(std::string_view text, const LogClock& clock);

}  // namespace oomrec::tools::deaths
