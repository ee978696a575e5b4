// Builds a session in memory, table by table, from another program's recording or from several
// recordings. Every command can then read it like a recording of oomrec.
//
// It reads as the session of a process that has exited. The limits of the session file apply: what
// does not fit is not added.
#pragma once

#include <cstdlib>
#include <filesystem>
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

  // Valid until the next entry is added.
  session::Header& header() { return *reinterpret_cast<session::Header*>(bytes_.get()); }

  // The number of the new entry; 0: the table is full.
  template <class T>
  std::uint32_t add(session::TableId table, const T& entry) {
    static_assert(std::is_trivially_destructible_v<T> && sizeof(T) <= session::kMaxEntryBytes);
    return add_entry(table, &entry, sizeof(T));
  }

  // Equal texts are stored once; 0: the table is full. `text` must outlive this.
  session::StringId string(std::string_view text);

  // The offset of `bytes` zeroed bytes within one segment; 0: the session is full.
  std::uint64_t allocate(std::uint64_t bytes);
  std::byte* at(std::uint64_t offset) { return bytes_.get() + offset; }

  // The finished session; nothing can be added afterwards.
  Bytes finish(std::uint64_t& bytes);

 private:
  session::TableDirectory& directory(session::TableId table) {
    return header().tables[static_cast<std::size_t>(table)];
  }
  std::uint32_t add_entry(session::TableId table, const void* entry, std::uint32_t bytes);
  std::uint64_t offset_of(session::TableId table, std::uint64_t number);

  Bytes bytes_;
  std::uint64_t capacity_ = 0;
  std::uint64_t end_ = session::kHeaderBytes;
  std::unordered_map<std::string_view, session::StringId> strings_;  // views of the caller's texts
};

// Recognizes a recording without opening it as one.

// Whether the file begins like a recording. False if it is not a readable regular file.
bool is_session_file(const std::filesystem::path& file);

}  // namespace oomrec::tools::recording
