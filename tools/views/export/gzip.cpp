#include "tools/views/export/gzip.h"

#include <zlib.h>

#include <array>
#include <new>

namespace oomrec::tools::views {

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
