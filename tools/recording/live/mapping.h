// A session's file, mapped read-only: its writer goes on beside us, and nothing is copied.
//
// The file is somebody else's and may be cut while we look, which raises SIGBUS at the page that is
// gone. In a mapping made here such a page becomes one of zeroes, which reads as absent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>

namespace oomrec::tools::recording {

struct MappedFile {
  std::shared_ptr<const std::byte> bytes;  // empty: it could not be mapped, with an errno
  std::uint64_t size = 0;
};

MappedFile map_file(const std::filesystem::path& file);

}  // namespace oomrec::tools::recording
