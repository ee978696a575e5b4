#include "tools/recording/reading/image.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <string>

#include "common/session/layout.h"
#include "tools/base/foreign_file.h"

namespace oomrec::tools::recording {

using session::TableId;

Image::Image() : bytes_(nullptr, &std::free) {
  capacity_ = session::kHeaderBytes;
  bytes_.reset(static_cast<std::byte*>(std::calloc(1, capacity_)));
  if (bytes_ == nullptr) throw std::bad_alloc{};
  header().magic = session::kMagic;
  header().version = session::kVersion;
  header().header_bytes = session::kHeaderBytes;
  header().state = static_cast<session::u32>(session::State::exited);
}

std::uint64_t Image::allocate(std::uint64_t bytes) {
  // A piece that is aligned to its size crosses no segment boundary.
  const std::uint64_t align = std::clamp<std::uint64_t>(
      std::bit_ceil(bytes), alignof(std::max_align_t), session::kSegmentBytes);
  const std::uint64_t offset = (end_ + align - 1) & ~(align - 1);
  if (bytes > session::kSegmentBytes || offset + bytes > session::kMostBytes) return 0;
  end_ = offset + bytes;
  if (end_ > capacity_) {
    const std::uint64_t more = std::min(session::kMostBytes, std::max(end_, 2 * capacity_));
    auto* const grown = static_cast<std::byte*>(std::realloc(bytes_.get(), more));
    if (grown == nullptr) throw std::bad_alloc{};
    static_cast<void>(bytes_.release());
    bytes_.reset(grown);
    std::memset(grown + capacity_, 0, more - capacity_);
    capacity_ = more;
  }
  return offset;
}

// The offset of entry `number`. Allocates its chunk on first use.
std::uint64_t Image::offset_of(TableId table, std::uint64_t number) {
  const session::Chunks chunks{directory(table).entry_bytes};
  if (number >= chunks.first(session::kMaxChunks)) return 0;
  const session::Chunks::Slot slot = chunks.locate(number);
  if (directory(table).chunk_offsets[slot.chunk] == 0) {
    const std::uint64_t chunk = allocate(session::chunk_bytes(slot.chunk));
    directory(table).chunk_offsets[slot.chunk] = chunk;
  }
  const std::uint64_t chunk = directory(table).chunk_offsets[slot.chunk];
  return chunk == 0 ? 0 : chunk + slot.byte;
}

std::uint32_t Image::add_entry(TableId table, const void* entry, std::uint32_t bytes) {
  if (directory(table).entry_bytes == 0) {
    directory(table).entry_bytes = bytes;
    offset_of(table, 0);
    directory(table).committed = 1;  // entry 0 means none
  }
  const std::uint64_t number = directory(table).committed;
  const std::uint64_t offset = offset_of(table, number);
  if (offset == 0) return 0;
  std::memcpy(at(offset), entry, bytes);
  directory(table).committed = number + 1;
  return static_cast<std::uint32_t>(number);
}

session::StringId Image::string(std::string_view text) {
  const auto [cached, is_new] = strings_.try_emplace(text, 0);
  if (!is_new) return cached->second;
  constexpr std::uint64_t kAlign = 4;  // of a text; also the size of the length before it
  text = text.substr(0, session::kMaxStringBytes);
  const std::uint64_t bytes = kAlign + (text.size() + kAlign - 1) / kAlign * kAlign;
  session::TableDirectory& strings = directory(TableId::strings);
  if (strings.entry_bytes == 0) {
    strings.entry_bytes = 1;
    strings.committed = kAlign;
  }
  // A text must not cross chunks.
  const session::Chunks chunks{1};
  std::uint64_t id = strings.committed;
  while (id + bytes > chunks.first(chunks.locate(id).chunk + 1))
    id = chunks.first(chunks.locate(id).chunk + 1);
  if (id > ~session::StringId{0} || chunks.locate(id).chunk >= session::kMaxChunks) return 0;
  const std::uint64_t offset = offset_of(TableId::strings, id);
  if (offset == 0) return 0;
  const auto length = static_cast<std::uint32_t>(text.size());
  std::memcpy(at(offset), &length, sizeof length);
  if (!text.empty()) std::memcpy(at(offset + kAlign), text.data(), text.size());
  directory(TableId::strings).committed = id + bytes;
  cached->second = static_cast<session::StringId>(id);
  return cached->second;
}

Image::Bytes Image::finish(std::uint64_t& bytes) {
  header().file_bytes = capacity_;
  header().used_bytes = end_;
  bytes = capacity_;
  return std::move(bytes_);
}

bool is_session_file(const std::filesystem::path& file) {
  std::uint64_t magic = 0;
  const std::string first = first_bytes_of(ForeignPath::named(file), sizeof magic);
  std::memcpy(&magic, first.data(), first.size());
  return magic == session::kMagic;
}

}  // namespace oomrec::tools::recording
