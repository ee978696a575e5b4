#include "tools/base/foreign_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace oomrec::tools {
namespace {

class ForeignFile {
 public:
  explicit ForeignFile(const std::filesystem::path& file)
      : descriptor_(open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {
    if (descriptor_ >= 0 && fstat(descriptor_, &status_) == 0) return;
    error_ = errno;
  }
  ~ForeignFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  ForeignFile(const ForeignFile&) = delete;
  ForeignFile& operator=(const ForeignFile&) = delete;

  int error() const { return error_; }  // an errno; 0: it is open
  bool is_regular() const { return error_ == 0 && S_ISREG(status_.st_mode); }
  std::uint64_t bytes() const { return static_cast<std::uint64_t>(status_.st_size); }

  // At most `most` bytes. Files of /proc are longer than their size says.
  std::string read_up_to(std::uint64_t most) {
    std::string text(std::min(most, bytes()), '\0');
    std::size_t used = 0;
    for (;;) {
      if (used == text.size()) text.resize(std::min(most, used + kPartBytes));
      if (used == text.size()) return text;
      const ssize_t got = read(descriptor_, text.data() + used, text.size() - used);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) error_ = errno;
      if (got <= 0) break;
      used += static_cast<std::size_t>(got);
    }
    text.resize(used);
    return text;
  }

 private:
  static constexpr std::size_t kPartBytes = 4096;

  int descriptor_;
  int error_ = 0;
  struct stat status_ {};
};

[[noreturn]] void throw_unreadable(int error) {
  if (error == ENOENT) throw std::runtime_error{"is missing"};
  // What open() says of a socket, and of a device without a driver.
  if (error == ENXIO || error == ENODEV) throw std::runtime_error{"is not a file"};
  throw std::runtime_error{fmt::format("cannot be read: {}", std::strerror(error))};
}

}  // namespace

std::string read_foreign_file(const std::filesystem::path& file, std::uint64_t most_bytes) {
  ForeignFile foreign{file};
  if (foreign.error() != 0) throw_unreadable(foreign.error());
  if (!foreign.is_regular()) throw std::runtime_error{"is not a file"};
  std::string text;
  if (foreign.bytes() <= most_bytes) text = foreign.read_up_to(most_bytes + 1);
  if (foreign.bytes() > most_bytes || text.size() > most_bytes)
    throw std::runtime_error{fmt::format("is larger than {} MiB", most_bytes >> 20)};
  if (foreign.error() != 0) throw_unreadable(foreign.error());
  return text;
}

std::string first_bytes_of(const std::filesystem::path& file, std::size_t bytes) {
  ForeignFile foreign{file};
  return foreign.is_regular() ? foreign.read_up_to(bytes) : std::string{};
}

}  // namespace oomrec::tools
