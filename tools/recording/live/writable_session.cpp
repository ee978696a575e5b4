#include "tools/recording/live/writable_session.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace oomrec::tools::recording {

WritableSession::WritableSession(const std::filesystem::path& path) {
  const int fd = open(path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC);
  struct stat status {};
  if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
    bytes_ = static_cast<std::size_t>(status.st_size);
    void* const memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory != MAP_FAILED) memory_ = static_cast<std::byte*>(memory);
  }
  if (fd >= 0) close(fd);
  if (memory_ != nullptr) view_ = session::View{session::Bytes::contiguous(memory_, bytes_)};
}

WritableSession::~WritableSession() {
  if (memory_ != nullptr) munmap(memory_, bytes_);
}

}  // namespace oomrec::tools::recording
