// Facts of a bundle (common/facts/) as Json, and back from its files.
#pragma once

#include <algorithm>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/facts/describe.h"
#include "common/facts/writer.h"
#include "common/session/vocabulary.h"
#include "common/text/text.h"
#include "tools/base/json.h"
#include "tools/base/text.h"

namespace oomrec::tools {

// A part of a fact that is JSON itself: stacks, the program's own object.
struct JsonPart {
  Json json;
  void write(auto& tree) const { tree.value(json); }
};

template <class Fact>
Fact fact_of(const Json& object);
template <class Fact>
std::optional<Fact> fact_in(const Json& parent);

// What is absent, null or of another type stays as it is.
class FactReader {
 public:
  explicit FactReader(const Json& object) : object_(object) {}

  void field(std::string_view key, auto&& value, std::string_view /*meaning*/) {
    read(member(object_, key), value);
  }
  void object(std::string_view key, text::JsonLayout, std::string_view /*meaning*/,
              const auto& members) {
    FactReader inner{member(object_, key)};
    members(inner);
  }
  void object_or_null(std::string_view key, bool, text::JsonLayout layout, std::string_view meaning,
                      const auto& members) {
    object(key, layout, meaning, members);
  }

  template <class Fact>
  void section(Fact& fact) {
    FactReader inner{member(object_, facts::Section<Fact>::key)};
    facts::Section<Fact>::describe(inner, fact);
  }
  template <class Fact>
  void section(std::optional<Fact>& fact) {
    fact = fact_in<Fact>(object_);
  }

 private:
  template <std::unsigned_integral Number>
  static void read(const Json& json, Number& number) {
    if (json.is_number_unsigned()) number = json.get<Number>();
  }
  template <std::signed_integral Number>
  static void read(const Json& json, Number& number) {
    if (json.is_number_integer()) number = json.get<Number>();
  }
  static void read(const Json&, std::string_view) {}  // computed, not stored
  static void read(const Json& json, std::string& text) {
    if (json.is_string()) text = json.text();
  }
  static void read(const Json& json, JsonPart& part) { part.json = json; }
  template <class Value>
  static void read(const Json& json, std::optional<Value>& value) {
    const bool fits =
        std::same_as<Value, std::string> ? json.is_string() : json.is_number_unsigned();
    if (fits) value = json.get<Value>();
  }
  template <class Element>
  static void read(const Json& json, std::vector<Element>& list) {
    for (const Json& element : json)
      if constexpr (requires { facts::Section<Element>::key; })
        list.push_back(fact_of<Element>(element));
      else
        read(element, list.emplace_back());
  }
  template <class Text>
  static void read(const Json& json, const facts::TextOrNull<Text>& text) {
    read(json, text.text);
  }
  template <class Value>
  static void read(const Json& json, const facts::OrNull<Value>& value) {
    read(json, value.value);
  }
  template <class Number, class Names>
  static void read(const Json& json, const facts::Named<Number, Names>& number) {
    if (json.is_string())
      number.value = value_named<Number>(number.names, json.text()).value_or(number.value);
  }
  template <class Number>
  static void read(const Json& json, const facts::Flag<Number>& flag) {
    if (json.is_boolean()) flag.value = json.get<bool>();
  }
  template <std::size_t N>
  static void read(const Json& json, const facts::Name<char, N>& name) {
    if (json.is_string()) json.text().copy(name.text, N);
  }
  template <std::size_t N>
  static void read(const Json& json, const facts::Sentence<char, N>& sentence) {
    if (json.is_string()) text::Text{sentence.text}.add(json.text());
  }
  template <std::size_t M, std::size_t N, class Count>
  static void read(const Json& json, const facts::Sentences<char, M, N, Count>& sentences) {
    for (const Json& line : json)
      if (line.is_string() && sentences.count < M)
        text::Text{sentences.texts[sentences.count++]}.add(line.text());
  }

  const Json& object_;
};

// The fact in this object.
template <class Fact>
Fact fact_of(const Json& object) {
  Fact fact{};
  FactReader reader{object};
  facts::Section<Fact>::describe(reader, fact);
  return fact;
}

// The section of `parent` with this fact; nothing if it is absent, null or no object.
template <class Fact>
std::optional<Fact> fact_in(const Json& parent) {
  const Json& section = member(parent, facts::Section<Fact>::key);
  return section.is_object() ? std::optional{fact_of<Fact>(section)} : std::nullopt;
}

// Builds a Json by the calls that JsonWriter has, so that a fact is described once for the bundle's
// file and for the commands (common/facts/writer.h).
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

// A list of facts.
template <class Fact>
Json facts_json(const std::vector<Fact>& facts) {
  Json rows = Json::array();
  for (const Fact& fact : facts) rows.push_back(fact_json(fact));
  return rows;
}

}  // namespace oomrec::tools
