#include "tools/views/report/container.h"

#include <zlib.h>

#include <array>
#include <cstring>
#include <new>
#include <stdexcept>

namespace oomrec::tools::views {
namespace {

constexpr std::size_t kAlignment = 8;
constexpr std::size_t kBlockBytes = std::size_t{1} << 18;

void align(std::string& bytes) {
  bytes.resize((bytes.size() + kAlignment - 1) / kAlignment * kAlignment, '\0');
}

// Writes a zlib stream piece by piece.
class Deflater {
 public:
  Deflater() {
    if (deflateInit(&stream_, Z_DEFAULT_COMPRESSION) != Z_OK) throw std::bad_alloc{};
  }
  ~Deflater() { deflateEnd(&stream_); }
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;

  // `bytes` shorter than 4 GiB: a recording is at most 1 GiB.
  void add(const std::string& bytes, int flush) {
    // zlib only reads them, although next_in is not const.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream_.avail_in = static_cast<uInt>(bytes.size());
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(block_.data());
      stream_.avail_out = static_cast<uInt>(block_.size());
      if (deflate(&stream_, flush) == Z_STREAM_ERROR) throw std::logic_error{"deflate"};
      out_.append(block_.data(), block_.size() - stream_.avail_out);
    } while (stream_.avail_out == 0);
  }

  std::string take() { return std::move(out_); }

 private:
  z_stream stream_{};
  std::string block_ = std::string(kBlockBytes, '\0');
  std::string out_;
};

}  // namespace

template <class T>
void Container::append(const std::string& name, const char* type, const std::vector<T>& values) {
  align(bytes_);
  arrays_[name] = {{"type", type}, {"offset", bytes_.size()}, {"length", values.size()}};
  bytes_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

void Container::add(const std::string& name, const std::vector<std::uint8_t>& values) {
  append(name, "u8", values);
}
void Container::add(const std::string& name, const std::vector<std::uint16_t>& values) {
  append(name, "u16", values);
}
void Container::add(const std::string& name, const std::vector<std::uint32_t>& values) {
  append(name, "u32", values);
}
void Container::add(const std::string& name, const std::vector<double>& values) {
  append(name, "f64", values);
}

std::string Container::deflated(Json json) const {
  json["arrays"] = arrays_;
  const std::string text = json.dump();
  const auto length = static_cast<std::uint32_t>(text.size());
  std::string head(sizeof length, '\0');
  std::memcpy(head.data(), &length, sizeof length);
  head += text;
  align(head);
  Deflater deflater;
  deflater.add(head, Z_NO_FLUSH);
  deflater.add(bytes_, Z_FINISH);
  return deflater.take();
}

std::string base64(const std::string& bytes) {
  static constexpr char kDigits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - at);
    std::array<std::uint32_t, 3> group{};
    for (std::size_t i = 0; i < count; ++i) group[i] = static_cast<unsigned char>(bytes[at + i]);
    const std::uint32_t bits = group[0] << 16 | group[1] << 8 | group[2];
    for (unsigned i = 0; i < 4; ++i)
      text += i <= count ? kDigits[(bits >> (18 - 6 * i)) & 63] : '=';
  }
  return text;
}

}  // namespace oomrec::tools::views
