// Where an export goes: a file that the user named, or stdout. Written once, from front to back.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace oomrec::tools::views {

class Output {
 public:
  // An empty `path` is stdout. Throws Error where the file cannot be made, and where `binary` bytes
  // would go to a terminal.
  Output(const std::string& path, bool binary);
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  // Throws Error where they cannot be written, as on a full disk.
  void write(std::string_view bytes);

  // All has been written. Throws Error where it has not arrived.
  void finish();

 private:
  [[noreturn]] void fail(int error) const;

  std::string path_;
  std::FILE* file_;
};

}  // namespace oomrec::tools::views
