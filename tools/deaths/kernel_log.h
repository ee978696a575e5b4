// Reads the kernel's log, /dev/kmsg, else the first readable syslog file, else systemd's
// journal; and the logs of daemons.
//
// OOMREC_KERNEL_LOG=FILE names a file to read instead, in any format of log_lines.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/system/files.h"
#include "tools/deaths/log_lines.h"

namespace oomrec::tools::deaths {

struct KernelLog {
  std::vector<LogRecord> records;  // oldest first; empty: the log could not be read

  bool reaches_back_to(std::uint64_t realtime_ns) const {
    return !records.empty() && records.front().realtime_ns <= realtime_ns;
  }
};

// A file to read instead of the kernel's log. Empty: the one that OOMREC_KERNEL_LOG names, if set.
// "": always the kernel's own log.
using KernelLogFile = std::optional<std::string>;

// The boot that the log is read for. /dev/kmsg has nothing from earlier boots.
enum class Boot : std::uint8_t { current, earlier };

// The file to read instead; none: the kernel's own log.
std::optional<std::string> named_kernel_log(const KernelLogFile& file);

KernelLog read_kernel_log(const LogClock& clock, Boot boot, const KernelLogFile& file = {});

// Copies /dev/kmsg, or the file to read instead, into an unnamed temporary file, for a child
// process without the right to read the log: it opens the copy as /proc/self/fd/N. A File that is
// not open if the copy could not be written.
system::File copy_of_kernel_log(const KernelLogFile& file);

// The records of lines with a known format.
std::vector<LogRecord> parse_log(std::string_view text, const LogClock& clock);

// Of these, the kernel's.
KernelLog parse_kernel_log(std::string_view text, const LogClock& clock);

// The text of a log file, or of the kernel's log device.

// The last 4 MiB of a file, or every record of a device that the kernel still has. Never waits for
// more. Empty: it cannot be read.
std::string log_file_text(const char* path);

// The same, but empty for a file that was last written before that moment.
std::string log_file_text(const char* path, std::uint64_t from_realtime_ns);

// What earlyoom, systemd-oomd, systemd and kubelets have logged to systemd's journal since then, as
// journalctl shows it. Empty: there is no journal, or it cannot be read within two seconds.
std::string daemon_journal_text(std::uint64_t from_realtime_ns);

// The kernel's last 5000 lines in it: the only copy that other users than root have on Debian,
// where they may not read /dev/kmsg (kernel.dmesg_restrict), and groups such as adm read the
// journal.
std::string kernel_journal_text();

}  // namespace oomrec::tools::deaths
