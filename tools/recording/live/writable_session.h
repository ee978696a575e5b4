// A process' session, mapped to enter what only others know.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>

#include "common/session/view.h"

namespace oomrec::tools::recording {

class WritableSession {
 public:
  explicit WritableSession(const std::filesystem::path& path);
  ~WritableSession();
  WritableSession(const WritableSession&) = delete;
  WritableSession& operator=(const WritableSession&) = delete;

  // False: it is no session, or may not be written.
  bool is_open() const { return memory_ != nullptr && view_.problem() == session::Problem::none; }
  const session::View& view() const { return view_; }
  session::Header& header() { return *reinterpret_cast<session::Header*>(memory_); }
  // Null: it does not reach so far.
  std::byte* at(std::uint64_t offset, std::uint64_t bytes) {
    return view_.bytes().at(offset, bytes) != nullptr ? memory_ + offset : nullptr;
  }

 private:
  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
  session::View view_;
};

}  // namespace oomrec::tools::recording
