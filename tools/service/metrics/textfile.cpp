#include "tools/service/metrics/textfile.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "tools/base/descriptor.h"
#include "tools/base/error.h"
#include "tools/base/terminal.h"
#include "tools/base/text.h"

namespace oomrec::tools::service {
namespace {

using namespace std::chrono_literals;

constexpr const char* kName = "oomrec.prom";
constexpr auto kInterval = 15s;
constexpr auto kMinInterval = 1s;  // after a change

}  // namespace

Textfile::Textfile(const std::filesystem::path& directory, std::function<Page()> page)
    : directory_(std::filesystem::absolute(directory)), page_(std::move(page)) {
  if (!write()) {
    throw Error{Exit::bad_input,
                fmt::format("{} cannot be written: {}", printable((directory_ / kName).string()),
                            std::strerror(errno)),
                "Give the directory that node exporter reads (--collector.textfile.directory)."};
  }
  written_ = Clock::now();
  due_ = written_ + kInterval;
}

Textfile::~Textfile() { write(); }

void Textfile::write_soon() { due_ = std::min(due_, written_ + kMinInterval); }

void Textfile::on_poll(std::span<const pollfd>) {
  if (Clock::now() < due_) return;
  const bool written = write();
  if (!written && !failed_) {
    remark(fmt::format("--textfile: {} cannot be written: {}",
                       printable((directory_ / kName).string()), std::strerror(errno)));
  }
  failed_ = !written;
  written_ = Clock::now();
  due_ = written_ + kInterval;
}

// The temporary name does not end in .prom, so node exporter ignores it. It is a new file, never
// one that another user of the directory has put there: that user could keep it open, or be a
// FIFO's other end.
bool Textfile::write() const {
  const std::filesystem::path temporary = directory_ / fmt::format(".{}.{}", kName, getpid());
  unlink(temporary.c_str());  // left by a process that was killed
  const int descriptor = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (descriptor < 0) return false;
  // Independent of the umask: node exporter runs as another user.
  const bool written = fchmod(descriptor, 0644) == 0 && write_all(descriptor, *page_());
  int error = errno;
  if (close(descriptor) == 0 && written &&
      std::rename(temporary.c_str(), (directory_ / kName).c_str()) == 0)
    return true;
  if (written) error = errno;
  unlink(temporary.c_str());
  errno = error;
  return false;
}

}  // namespace oomrec::tools::service
