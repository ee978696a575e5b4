// Writes Python pickles, protocol 2: numbers, texts, lists, dicts, pairs, and references to earlier
// values. Each distinct text is written once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "tools/views/export/output.h"

namespace oomrec::tools::views {

class PickleWriter {
 public:
  using Reference = std::uint32_t;

  explicit PickleWriter(Output& output) : output_(output) { output_.write("\x80\x02"); }

  void number(std::int64_t value);
  void text(std::string_view value);
  void pair(std::int64_t first, std::int64_t second);
  void begin_list() { output_.write("]("); }
  void end_list() { output_.write("e"); }
  // Between the two calls: a key and a value for each entry.
  void begin_dict() { output_.write("}("); }
  void end_dict() { output_.write("u"); }
  void entry(std::string_view key, std::int64_t value) {
    text(key);
    number(value);
  }
  void entry(std::string_view key, std::string_view value) {
    text(key);
    text(value);
  }

  // Puts the value just completed into the pickle's memo.
  Reference memoize();
  // Writes a memoized value.
  void get(Reference);

  void end() { output_.write("."); }

 private:
  void code(char opcode, std::uint64_t argument, std::size_t bytes);

  Output& output_;
  std::unordered_map<std::string, Reference> texts_;
  Reference memo_size_ = 0;
};

}  // namespace oomrec::tools::views
