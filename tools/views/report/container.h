// The input of a report's page: a JSON text, and numbers as typed arrays, deflated together.
//
// Inflated: a u32 with the length of the JSON text, the text, zeros up to a multiple of 8, then the
// arrays, each at a multiple of 8 from there. The JSON's member `arrays` has the type, offset and
// length of each. Numbers are little-endian. JSON of the same numbers would be five times as long.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/base/json.h"

namespace oomrec::tools::views {

class Container {
 public:
  void add(const std::string& name, const std::vector<std::uint8_t>& values);
  void add(const std::string& name, const std::vector<std::uint16_t>& values);
  void add(const std::string& name, const std::vector<std::uint32_t>& values);
  void add(const std::string& name, const std::vector<double>& values);

  // The zlib stream of everything. It adds the member `arrays` to `json`.
  std::string deflated(Json json) const;

 private:
  template <class T>
  void append(const std::string& name, const char* type, const std::vector<T>& values);

  Json arrays_ = Json::object();
  std::string bytes_;
};

std::string base64(const std::string& bytes);

}  // namespace oomrec::tools::views
