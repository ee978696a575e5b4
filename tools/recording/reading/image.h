// A session in memory, made table by table: of what another program recorded, or of several
// recordings, so that every command reads it as one.
//
// No process ever had it mapped; it counts as left by exit. Limits are those of the session file:
// what does not fit is not added.
#pragma once

#include <cstdlib>
#include <memory>
#include <string_view>
#include <type_traits>
#include <unordered_map>

#include "common/session/view.h"

namespace oomrec::tools::recording {

class Image {
 public:
  using Bytes = std::unique_ptr<std::byte, decltype(&std::free)>;

  Image();

  // Until the next entry is added.
  session::Header& header() { return *reinterpret_cast<session::Header*>(bytes_.get()); }

  // The number of the new entry; 0: there is no room.
  template <class T>
  std::uint32_t add(session::TableId table, const T& entry) {
    static_assert(std::is_trivially_destructible_v<T> && sizeof(T) <= session::kMaxEntryBytes);
    return add_entry(table, &entry, sizeof(T));
  }

  // Equal texts are stored once; 0 where there is no room.
  session::StringId string(std::string_view text);

  // Offset of `bytes` zero bytes, inside of one segment; 0: there is no room.
  std::uint64_t take(std::uint64_t bytes);
  std::byte* at(std::uint64_t offset) { return bytes_.get() + offset; }

  // The finished session; nothing can be added afterwards.
  Bytes finish(std::uint64_t& bytes);

 private:
  session::TableDirectory& directory(session::TableId table) {
    return header().tables[static_cast<std::size_t>(table)];
  }
  std::uint32_t add_entry(session::TableId table, const void* entry, std::uint32_t bytes);
  std::uint64_t place_of(session::TableId table, std::uint64_t number);

  Bytes bytes_;
  std::uint64_t capacity_ = 0;
  std::uint64_t end_ = session::kHeaderBytes;
  std::unordered_map<std::string_view, session::StringId> strings_;  // texts of the caller's
};

}  // namespace oomrec::tools::recording
