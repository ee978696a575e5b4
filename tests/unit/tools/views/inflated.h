// A report's data, parsed as its page does.
#pragma once

#include <doctest/doctest.h>
#include <zlib.h>

#include <cstring>
#include <string>
#include <vector>

#include "tools/base/json.h"

namespace oomrec::tests {

class Inflated {
 public:
  explicit Inflated(const std::string& deflated) {
    std::string bytes(std::size_t{64} << 20, '\0');
    uLongf length = bytes.size();
    REQUIRE(uncompress(reinterpret_cast<Bytef*>(bytes.data()), &length,
                       reinterpret_cast<const Bytef*>(deflated.data()), deflated.size()) == Z_OK);
    bytes.resize(length);
    std::uint32_t text_bytes = 0;
    std::memcpy(&text_bytes, bytes.data(), sizeof text_bytes);
    json_ = tools::parse_json(bytes.substr(sizeof text_bytes, text_bytes));
    arrays_ = bytes.substr((sizeof text_bytes + text_bytes + 7) / 8 * 8);
  }

  const tools::Json& json() const { return json_; }
  bool has(const std::string& name) const { return json_["arrays"].contains(name); }

  std::vector<double> array(const std::string& name) const {
    REQUIRE_MESSAGE(has(name), name);
    const tools::Json& row = json_["arrays"][name];
    const std::string& type = row["type"].text();
    if (type == "u8") return values<std::uint8_t>(row);
    if (type == "u16") return values<std::uint16_t>(row);
    if (type == "u32") return values<std::uint32_t>(row);
    REQUIRE(type == "f64");
    return values<double>(row);
  }

  // Element `i` of an array that holds numbers of another or of a list.
  std::size_t index(const std::string& name, std::size_t i) const {
    return static_cast<std::size_t>(array(name).at(i));
  }
  std::string text(const std::string& name, std::size_t i) const {
    return json_["strings"][index(name, i)].text();
  }

  // The functions of a row's stack, outermost first.
  std::vector<std::string> functions(std::size_t row) const {
    std::vector<std::string> names;
    for (std::size_t node = index("row_node", row); node != 0; node = index("node_parent", node))
      names.insert(names.begin(), text("place_function", index("node_place", node)));
    return names;
  }

 private:
  template <class T>
  std::vector<double> values(const tools::Json& row) const {
    const auto offset = row["offset"].get<std::size_t>();
    const auto length = row["length"].get<std::size_t>();
    REQUIRE(offset % 8 == 0);
    REQUIRE(offset + length * sizeof(T) <= arrays_.size());
    std::vector<T> read(length);
    std::memcpy(read.data(), arrays_.data() + offset, length * sizeof(T));
    return {read.begin(), read.end()};
  }

  tools::Json json_;
  std::string arrays_;
};

}  // namespace oomrec::tests
