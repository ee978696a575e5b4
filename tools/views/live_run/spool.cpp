#include "tools/views/live_run/spool.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>

namespace oomrec::tools::views {

Spool::Spool() {
  std::error_code error;
  const std::filesystem::path directory = std::filesystem::temp_directory_path(error);
  if (!error) file_ = open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file_ < 0) file_ = memfd_create("output", MFD_CLOEXEC);
}

Spool::~Spool() {
  if (file_ >= 0) close(file_);
}

void Spool::add(std::string_view bytes) {
  if (file_ < 0 || lost_ != 0 || !write_all(file_, bytes)) lost_ += bytes.size();
}

void Spool::print_to(int descriptor) const {
  std::array<char, 64 * 1024> buffer{};
  off_t at = 0;
  ssize_t count = 0;
  while ((count = pread(file_, buffer.data(), buffer.size(), at)) > 0) {
    if (!write_all(descriptor, {buffer.data(), static_cast<std::size_t>(count)})) return;
    at += count;
  }
}

bool write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace oomrec::tools::views
