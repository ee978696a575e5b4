// What a report's page reads: a JSON text, and numbers as typed arrays, deflated together.
//
// Inflated: a u32 with the length of the JSON text, the text, zeros up to a multiple of 8, then the
// arrays, each at a multiple of 8 from there. The JSON's member `arrays` tells each one's type,
// offset and length; plain JSON of the same numbers is five times as long. Little-endian.
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

  // Everything, with the arrays as the member `arrays` of `json`: a zlib stream.
  std::string deflated(Json json) const;

 private:
  template <class T>
  void append(const std::string& name, const char* type, const std::vector<T>& values);

  Json arrays_ = Json::object();
  std::string bytes_;
};

std::string base64(const std::string& bytes);

}  // namespace oomrec::tools::views
