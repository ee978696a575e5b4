#include "tools/bundles/ranks/copied_bundle.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string_view>
#include <system_error>

namespace oomrec::tools::bundles {
namespace {

constexpr int kRead = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
constexpr unsigned kDeepest = 8;  // a job's ranks are two levels deep

[[noreturn]] void fail(int error) { throw std::system_error{error, std::generic_category()}; }

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {
    if (number < 0) fail(errno);
  }
  ~Descriptor() { close(number_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  operator int() const { return number_; }

 private:
  int number_;
};

void copy_file(int from, off_t bytes, int to_directory, const char* name) {
  const Descriptor to{openat(to_directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)};
  while (bytes > 0) {
    const ssize_t count = sendfile(to, from, nullptr, static_cast<std::size_t>(bytes));
    if (count < 0) fail(errno);
    if (count == 0) return;  // it was cut meanwhile
    bytes -= count;
  }
}

// `from`, `to`: descriptors of directories.
void copy_entries(int from, int to, unsigned depth) {
  if (depth > kDeepest) fail(ELOOP);
  const int again = openat(from, ".", kRead | O_DIRECTORY);  // closedir() closes it
  if (again < 0) fail(errno);
  const std::unique_ptr<DIR, int (*)(DIR*)> directory{fdopendir(again), closedir};
  if (directory == nullptr) fail(errno);
  while (const dirent* entry = readdir(directory.get())) {
    const std::string_view name{entry->d_name};
    if (name == "." || name == "..") continue;
    const int found = openat(from, entry->d_name, kRead | O_NOFOLLOW);
    // A link, a socket, a device without a driver.
    if (found < 0 && (errno == ELOOP || errno == ENXIO || errno == ENODEV)) continue;
    const Descriptor file{found};
    struct stat status {};
    if (fstat(file, &status) != 0) fail(errno);
    if (S_ISREG(status.st_mode)) copy_file(file, status.st_size, to, entry->d_name);
    if (!S_ISDIR(status.st_mode)) continue;
    if (mkdirat(to, entry->d_name, 0700) != 0) fail(errno);
    copy_entries(file, Descriptor{openat(to, entry->d_name, kRead | O_DIRECTORY | O_NOFOLLOW)},
                 depth + 1);
  }
}

}  // namespace

void copy_bundle(const std::filesystem::path& from, const std::filesystem::path& to) {
  const Descriptor source{open(from.c_str(), kRead | O_DIRECTORY)};
  if (mkdir(to.c_str(), 0700) != 0) fail(errno);
  copy_entries(source, Descriptor{open(to.c_str(), kRead | O_DIRECTORY | O_NOFOLLOW)}, 0);
}

}  // namespace oomrec::tools::bundles
