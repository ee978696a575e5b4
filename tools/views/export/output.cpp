#include "tools/views/export/output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>

#include "tools/base/error.h"
#include "tools/base/text.h"

namespace oomrec::tools::views {

Output::Output(const std::string& path, Encoding encoding)
    : path_(path == "-" ? "" : path), file_(stdout) {
  if (!path_.empty()) {
    // As private as the recording, whatever the umask.
    const int descriptor = open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (descriptor < 0) fail(errno);
    file_ = fdopen(descriptor, "wb");
    if (file_ == nullptr) fail(errno);
  } else if (encoding == Encoding::binary && isatty(STDOUT_FILENO) != 0) {
    throw Error{Exit::bad_input, "this format is binary: not for a terminal",
                "Give a file (-o FILE), or pipe it into a program."};
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
  // main() handles a failure of stdout.
  if (path_.empty()) throw std::system_error{error, std::generic_category()};
  throw Error{Exit::bad_input,
              fmt::format("{} could not be written: {}", printable(path_), std::strerror(error)),
              "Give a file in a directory that you can write to, on a disk with free space."};
}

std::string gzipped(std::string_view bytes) {
  constexpr int kGzip = 15 + 16;  // the largest window, and gzip's header
  constexpr int kMemoryLevel = 8;
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzip, kMemoryLevel,
                   Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::bad_alloc{};
  std::string zipped;
  std::array<char, 64 * 1024> buffer;
  int result = Z_OK;
  while (result == Z_OK) {
    // zlib counts input in 32 bits.
    if (stream.avail_in == 0) {
      const std::string_view part = bytes.substr(0, std::size_t{1} << 30);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(part.data()));
      stream.avail_in = static_cast<uInt>(part.size());
      bytes.remove_prefix(part.size());
    }
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = buffer.size();
    result = deflate(&stream, bytes.empty() ? Z_FINISH : Z_NO_FLUSH);
    zipped.append(buffer.data(), buffer.size() - stream.avail_out);
  }
  deflateEnd(&stream);
  return zipped;
}

}  // namespace oomrec::tools::views
