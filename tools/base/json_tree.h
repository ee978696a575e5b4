// Builds a Json by the calls that JsonWriter has, so that a fact is described once for the bundle's
// file and for the commands (common/facts/writer.h).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/facts/writer.h"
#include "tools/base/json.h"
#include "tools/base/text.h"

namespace oomrec::tools {

class JsonTree {
 public:
  void begin_object(text::JsonLayout) { open_.push_back(&put(Json::object())); }
  void end_object() { open_.pop_back(); }
  void begin_array(text::JsonLayout) { open_.push_back(&put(Json::array())); }
  void end_array() { open_.pop_back(); }
  JsonTree& key(std::string_view name) {
    key_ = name;
    return *this;
  }

  void string(std::string_view text) { put(text); }
  // A name from outside: safe to print.
  void string_or_null(std::string_view name) { put(text_or_null(printable(name))); }
  void number(std::uint64_t value) { put(value); }
  void signed_number(std::int64_t value) { put(value); }
  void boolean(bool value) { put(value); }
  void null() { put(nullptr); }
  void value(Json value) { put(std::move(value)); }

  Json take() { return std::move(root_); }

 private:
  Json& put(Json value) {
    if (open_.empty()) return root_ = std::move(value);
    Json& parent = *open_.back();
    if (parent.is_object()) return parent[key_] = std::move(value);
    parent.push_back(std::move(value));
    return parent.back();
  }

  Json root_;
  std::vector<Json*> open_;  // only the innermost grows
  std::string_view key_;
};

// A section of a bundle; null if it is not known.
template <class Fact>
Json fact_json(const Fact& fact) {
  JsonTree tree;
  facts::write(tree, fact);
  return tree.take();
}

// The same with its key, as a member of Json{…}.
template <class Fact>
Json fact_member(const Fact& fact) {
  return Json::array({facts::Section<Fact>::key, fact_json(fact)});
}

}  // namespace oomrec::tools
