// Maps a session's file read-only, while its process keeps writing it. Nothing is copied.
//
// The owner may truncate the file at any time: reading a page that is gone raises SIGBUS. In these
// mappings a handler replaces such a page by zeroes, which read as absent entries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>

namespace oomrec::tools::recording {

struct MappedFile {
  std::shared_ptr<const std::byte> bytes;  // empty: mapping failed, see errno
  std::uint64_t size = 0;
};

MappedFile map_file(const std::filesystem::path& file);

}  // namespace oomrec::tools::recording
