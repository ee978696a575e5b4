// The destination of an export: a file or stdout. Written once, from front to back.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace oomrec::tools::views {

enum class Encoding { text, binary };

class Output {
 public:
  // An empty `path` is stdout. Throws Error if the file cannot be created, or if binary output
  // would go to a terminal.
  Output(const std::string& path, Encoding encoding);
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  // Throws Error if they cannot be written, for example because the disk is full.
  void write(std::string_view bytes);

  // Call after the last write(). Throws Error if buffered bytes cannot be written.
  void finish();

 private:
  [[noreturn]] void fail(int error) const;

  std::string path_;
  std::FILE* file_;
};

}  // namespace oomrec::tools::views
