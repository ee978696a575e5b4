#include "tools/deaths/kernel_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "common/system/units.h"
#include "tools/base/descriptor.h"

namespace oomrec::tools::deaths {
namespace {

constexpr const char* kKernelLog = "/dev/kmsg";
constexpr std::array<const char*, 3> kKernelLogFiles = {"/var/log/kern.log", "/var/log/messages",
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
  std::vector<const char*> paths{kKernelLogFiles.begin(), kKernelLogFiles.end()};
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

namespace {

constexpr std::size_t kNewestBytes = std::size_t{4} << 20;  // read from the end of a file

class File {
 public:
  explicit File(const char* path)
      : descriptor_(open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY)) {}

  struct stat status() const {
    struct stat status {};
    fstat(descriptor_, &status);
    return status;
  }
  bool is_device() const { return S_ISCHR(status().st_mode); }

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
  Descriptor descriptor_;
};

// A device returns one record per read: a line, followed by lines with its properties, which we
// drop.
std::string text_of(const File& file) {
  constexpr std::size_t kRecordBytes = 8192;
  std::string text;
  std::string part(kRecordBytes, '\0');
  const bool device = file.is_device();
  if (!device) file.skip_to_last(kNewestBytes);
  while (const std::size_t got = file.read_some(part.data(), part.size())) {
    const std::string_view bytes{part.data(), got};
    text += device ? bytes.substr(0, bytes.find('\n')) : bytes;
    if (device) text += '\n';
  }
  return text;
}

// What journalctl prints with these options. Empty: there is no journal, or it takes too long.
std::string journal_text(const std::string& options) {
  if (access("/run/systemd/journal", F_OK) != 0) return {};
  const std::string command =
      "timeout 2 journalctl --quiet --no-pager --output=short-iso " + options + " 2>/dev/null";
  std::FILE* const output = popen(command.c_str(), "re");
  if (output == nullptr) return {};
  std::string text;
  std::string part(8192, '\0');
  while (const std::size_t got = fread(part.data(), 1, part.size(), output))
    text.append(part, 0, got);
  pclose(output);
  return text;
}

}  // namespace

std::string log_file_text(const char* path) { return text_of(File{path}); }

std::string log_file_text(const char* path, std::uint64_t from_realtime_ns) {
  const File file{path};
  const struct stat status = file.status();
  const bool is_old =
      S_ISREG(status.st_mode) &&
      static_cast<std::uint64_t>(status.st_mtime + 1) * kSecondNs < from_realtime_ns;
  return is_old ? std::string{} : text_of(file);
}

std::string daemon_journal_text(std::uint64_t from_realtime_ns) {
  return journal_text(
      "--lines=1000 --identifier=earlyoom --identifier=systemd-oomd --identifier=systemd"
      " --identifier=kubelet --identifier=k3s --identifier=nohang --since=@" +
      std::to_string(from_realtime_ns / kSecondNs));
}

std::string kernel_journal_text() { return journal_text("--lines=5000 _TRANSPORT=kernel"); }

}  // namespace oomrec::tools::deaths
