// Where an export is written to: a file or stdout, compressed, or as a JSON object piece by
// piece.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "tools/base/json.h"

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

// gzip compression, which pprof's profiles require.

std::string gzipped(std::string_view bytes);

// Writes a JSON object piece by piece: a large export is never in memory as a whole.

// Members appear in the order of the calls, and each row of an array on its own line.
class JsonStream {
 public:
  explicit JsonStream(Output& output) : output_(output) {}

  void member(std::string_view key, const Json& value) {
    begin(key);
    output_.write(json_text(value));
  }

  void begin_array(std::string_view key) {
    begin(key);
    output_.write("[");
    first_row_ = true;
  }
  void row(const Json& value) {
    output_.write(first_row_ ? "\n" : ",\n");
    first_row_ = false;
    output_.write(json_text(value));
  }
  void end_array() { output_.write("\n]"); }

  void end() { output_.write("\n}\n"); }

 private:
  void begin(std::string_view key) {
    output_.write(first_member_ ? "{\n" : ",\n");
    first_member_ = false;
    output_.write(json_text(std::string{key}));
    output_.write(": ");
  }

  Output& output_;
  bool first_member_ = true;
  bool first_row_ = true;
};

}  // namespace oomrec::tools::views
