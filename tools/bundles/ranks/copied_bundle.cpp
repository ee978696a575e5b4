#include "tools/bundles/ranks/copied_bundle.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include <cerrno>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include "common/system/files.h"

namespace oomrec::tools::bundles {
namespace {

using system::File;

constexpr int kRead = O_RDONLY | O_NONBLOCK | O_NOCTTY;
constexpr unsigned kDeepest = 8;  // a job's ranks are two levels deep

[[noreturn]] void fail(int error) { throw std::system_error{error, std::generic_category()}; }

File opened(File file) {
  if (!file.is_open()) fail(file.error());
  return file;
}

void copy_file(int from, off_t bytes, int to_directory, const char* name) {
  const File to = opened(File::open_at(to_directory, name, O_WRONLY | O_CREAT | O_EXCL, 0600));
  while (bytes > 0) {
    const ssize_t count = sendfile(to.descriptor(), from, nullptr, static_cast<std::size_t>(bytes));
    if (count < 0) fail(errno);
    if (count == 0) return;  // it was cut meanwhile
    bytes -= count;
  }
}

// `from`, `to`: descriptors of directories.
void copy_entries(int from, int to, unsigned depth) {
  if (depth > kDeepest) fail(ELOOP);
  File again = opened(File::open_at(from, ".", kRead | O_DIRECTORY));
  const std::unique_ptr<DIR, int (*)(DIR*)> directory{fdopendir(again.descriptor()), closedir};
  if (directory == nullptr) fail(errno);
  again.release();  // closedir() closes it
  while (const dirent* entry = readdir(directory.get())) {
    const std::string_view name{entry->d_name};
    if (name == "." || name == "..") continue;
    File found = File::open_at(from, entry->d_name, kRead | O_NOFOLLOW);
    const int error = found.error();
    // A link, a socket, a device without a driver.
    if (error == ELOOP || error == ENXIO || error == ENODEV) continue;
    const File file = opened(std::move(found));
    struct stat status {};
    if (fstat(file.descriptor(), &status) != 0) fail(errno);
    if (S_ISREG(status.st_mode)) copy_file(file.descriptor(), status.st_size, to, entry->d_name);
    if (!S_ISDIR(status.st_mode)) continue;
    if (mkdirat(to, entry->d_name, 0700) != 0) fail(errno);
    const File made = opened(File::open_at(to, entry->d_name, kRead | O_DIRECTORY | O_NOFOLLOW));
    copy_entries(file.descriptor(), made.descriptor(), depth + 1);
  }
}

}  // namespace

void copy_bundle(const std::filesystem::path& from, const std::filesystem::path& to) {
  const File source = opened(File::open(from.c_str(), kRead | O_DIRECTORY));
  if (mkdir(to.c_str(), 0700) != 0) fail(errno);
  const File made = opened(File::open(to.c_str(), kRead | O_DIRECTORY | O_NOFOLLOW));
  copy_entries(source.descriptor(), made.descriptor(), 0);
}

}  // namespace oomrec::tools::bundles
