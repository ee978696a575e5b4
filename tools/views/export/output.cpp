#include "tools/views/export/output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "tools/base/error.h"
#include "tools/base/text.h"

namespace oomrec::tools::views {

Output::Output(const std::string& path, bool binary) : path_(path), file_(stdout) {
  if (!path.empty()) {
    file_ = std::fopen(path.c_str(), "wbe");
    if (file_ == nullptr) fail(errno);
  } else if (binary && isatty(STDOUT_FILENO) != 0) {
    throw Error{Exit::bad_input, "this format is not for a terminal",
                "Name a file (-o FILE), or send it to a program."};
  }
}

Output::~Output() {
  if (file_ != nullptr && file_ != stdout) std::fclose(file_);
}

void Output::write(std::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) fail(errno);
}

void Output::finish() {
  if (std::fflush(file_) != 0) fail(errno);
  if (file_ == stdout) return;
  std::FILE* const file = file_;
  file_ = nullptr;
  if (std::fclose(file) != 0) fail(errno);
}

void Output::fail(int error) const {
  // main() knows what a failure of stdout means.
  if (path_.empty()) throw std::system_error{error, std::generic_category()};
  throw Error{Exit::bad_input,
              fmt::format("{} could not be written: {}", printable(path_), std::strerror(error)),
              "Name a file in a directory of yours, on a disk that has room."};
}

}  // namespace oomrec::tools::views
