#include "tools/deaths/kernel_log.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "tools/deaths/log_files.h"

namespace oomrec::tools::deaths {
namespace {

constexpr const char* kKernelLog = "/dev/kmsg";
constexpr std::array<const char*, 3> kFiles = {"/var/log/kern.log", "/var/log/messages",
                                               "/var/log/syslog"};

}  // namespace

std::vector<LogRecord> parse_log(std::string_view text, const LogClock& clock) {
  std::vector<LogRecord> records;
  std::uint64_t human_time_ns = 0;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (auto record = human_record(line, clock, human_time_ns))
      records.push_back(std::move(*record));
    else if (auto known = log_record(line, clock))
      records.push_back(std::move(*known));
  }
  return records;
}

KernelLog parse_kernel_log(std::string_view text, const LogClock& clock) {
  KernelLog log{parse_log(text, clock)};
  std::erase_if(log.records, [](const LogRecord& record) { return record.sender != "kernel"; });
  return log;
}

std::optional<std::string> named_kernel_log(const KernelLogFile& file) {
  if (file) return file->empty() ? std::nullopt : file;
  const char* const named = std::getenv("OOMREC_KERNEL_LOG");
  return named != nullptr ? std::optional<std::string>{named} : std::nullopt;
}

KernelLog read_kernel_log(const LogClock& clock, Boot boot, const KernelLogFile& file) {
  std::vector<const char*> paths{kFiles.begin(), kFiles.end()};
  if (boot == Boot::current) paths.insert(paths.begin(), kKernelLog);
  const std::optional<std::string> named = named_kernel_log(file);
  if (named) paths = {named->c_str()};
  for (const char* const path : paths) {
    KernelLog log = parse_kernel_log(log_file_text(path), clock);
    if (!log.records.empty()) return log;
  }
  return named ? KernelLog{} : parse_kernel_log(kernel_journal_text(), clock);
}

system::File copy_of_kernel_log(const KernelLogFile& file) {
  const std::string text = log_file_text(named_kernel_log(file).value_or(kKernelLog).c_str());
  for (const std::string& directory :
       {std::string{"/dev/shm"}, std::string{system::g_roots.temporary}}) {
    system::File copy = system::File::open(directory.c_str(), O_TMPFILE | O_RDWR, 0600);
    // Opened by its descriptor's path, which checks the mode.
    if (copy.is_open() && copy.write(text.data(), text.size()) == 0 &&
        fchmod(copy.descriptor(), 0444) == 0)
      return copy;
  }
  return {};
}

}  // namespace oomrec::tools::deaths
