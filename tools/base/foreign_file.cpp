#include "tools/base/foreign_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace oomrec::tools {
namespace {

namespace fs = std::filesystem;

constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
constexpr std::size_t kPartBytes = 4096;

std::string problem_of(int error, const ForeignPath& file) {
  if (error == ENOENT) return "is missing";
  if (error == ELOOP && !file.may_be_link()) return "is a symbolic link";
  // What open() says of a socket, and of a device without a driver.
  if (error == ENXIO || error == ENODEV) return "is not a file";
  return fmt::format("cannot be read: {}", std::strerror(error));
}

}  // namespace

ForeignPath ForeignPath::named(fs::path file) { return {std::move(file), true}; }

// One component below the directory, which is no link (O_NOFOLLOW), leads nowhere else: openat2()
// with RESOLVE_BENEATH, which kernels before 5.6 lack, would add nothing.
ForeignPath ForeignPath::in(const fs::path& directory, std::string_view name) {
  if (name.empty() || name == "." || name == ".." || name.find('/') != name.npos)
    throw std::logic_error{fmt::format("{} is not a name of a file in a bundle", name)};
  return {directory / name, false};
}

int ForeignPath::open() const {
  return ::open(path_.c_str(), may_be_link_ ? kFlags : kFlags | O_NOFOLLOW);
}

ForeignFile::ForeignFile(const ForeignPath& file) : descriptor_(file.open()) {
  if (descriptor_ < 0 || fstat(descriptor_, &status_) != 0) {
    error_ = errno;
    problem_ = problem_of(error_, file);
  } else if (!S_ISREG(status_.st_mode)) {
    problem_ = "is not a file";
  }
}

std::string ForeignFile::read_up_to(std::uint64_t most) {
  if (!problem_.empty()) return {};
  std::string text(std::min(most, bytes()), '\0');
  std::size_t used = 0;
  for (;;) {
    if (used == text.size()) text.resize(std::min(most, used + kPartBytes));
    if (used == text.size()) return text;
    const ssize_t got = read(descriptor_, text.data() + used, text.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) problem_ = fmt::format("cannot be read: {}", std::strerror(errno));
    if (got <= 0) break;
    used += static_cast<std::size_t>(got);
  }
  text.resize(used);
  return text;
}

std::string read_foreign_file(const ForeignPath& file, std::uint64_t most_bytes) {
  ForeignFile foreign{file};
  std::string text;
  if (foreign.bytes() <= most_bytes) text = foreign.read_up_to(most_bytes + 1);
  if (!foreign.problem().empty()) throw std::runtime_error{foreign.problem()};
  if (foreign.bytes() > most_bytes || text.size() > most_bytes)
    throw std::runtime_error{fmt::format("is larger than {} MiB", most_bytes >> 20)};
  return text;
}

std::string first_bytes_of(const ForeignPath& file, std::size_t bytes) {
  return ForeignFile{file}.read_up_to(bytes);
}

}  // namespace oomrec::tools
