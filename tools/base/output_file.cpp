#include "tools/base/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tools/base/descriptor.h"
#include "tools/base/error.h"
#include "tools/base/text.h"

namespace oomrec::tools {
namespace {

[[noreturn]] void throw_cannot_write(const std::filesystem::path& file, int error) {
  throw Error{
      Exit::bad_input,
      fmt::format("{} cannot be written: {}", printable(file.string()), std::strerror(error)),
      "Name another file: -o FILE, or -o - for stdout."};
}

}  // namespace

bool write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

void write_output(const std::filesystem::path& file, const std::string& bytes, IfExists if_exists) {
  const int mode = if_exists == IfExists::fail ? O_EXCL : O_TRUNC;
  const int descriptor = open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | mode, 0600);
  if (descriptor < 0 && errno == EEXIST)
    throw Error{Exit::bad_input, fmt::format("{} already exists", printable(file.string())),
                "Overwrite it with --force, or name another file: -o FILE"};
  if (descriptor < 0) throw_cannot_write(file, errno);
  int error = write_all(descriptor, bytes) ? 0 : errno;
  if (close(descriptor) != 0 && error == 0) error = errno;
  if (error == 0) return;
  std::error_code ignored;
  if (std::filesystem::is_regular_file(file, ignored)) std::filesystem::remove(file, ignored);
  throw_cannot_write(file, error);
}

void replace_file(const std::filesystem::path& directory, const std::string& name,
                  const std::string& bytes) {
  const std::filesystem::path partial = directory / fmt::format(".{}.partial", name);
  std::error_code error;
  std::filesystem::remove(partial, error);  // left by a process that was killed
  write_output(partial, bytes, IfExists::fail);
  std::filesystem::rename(partial, directory / name, error);
  if (!error) return;
  const int problem = error.value();
  std::filesystem::remove(partial, error);
  throw_cannot_write(directory / name, problem);
}

}  // namespace oomrec::tools
