// A file of the user's own, opened without following a link. The lock of whoever recovers a
// recording is on this.
#pragma once

#include <filesystem>

#include "common/session/layout.h"

namespace oomrec::tools::bundles {

class OwnFile {
 public:
  explicit OwnFile(const std::filesystem::path& path);
  ~OwnFile();
  OwnFile(const OwnFile&) = delete;
  OwnFile& operator=(const OwnFile&) = delete;

  bool ours() const;

  // Nobody else has it, and nobody has finished with it meanwhile.
  bool claim() const;

  // False: it is not yet a session.
  bool read_header(session::Header& header) const;

  // It is not yet a session, and never will be.
  bool never_began(const std::filesystem::path& path) const;

 private:
  int descriptor_;
};

}  // namespace oomrec::tools::bundles
