// The text of a log file, or of the kernel's log device.
#pragma once

#include <cstdint>
#include <string>

namespace oomrec::tools::deaths {

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
