// Writes a JSON object piece by piece: a large export is never in memory as a whole.
#pragma once

#include <string_view>

#include "tools/base/json.h"
#include "tools/views/export/output.h"

namespace oomrec::tools::views {

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
