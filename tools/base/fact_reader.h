// Reads the facts of a bundle back from its files (common/facts/describe.h).
#pragma once

#include <algorithm>
#include <concepts>
#include <optional>
#include <string_view>

#include "common/facts/describe.h"
#include "common/session/vocabulary.h"
#include "common/text/text.h"
#include "tools/base/json.h"

namespace oomrec::tools {

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

 private:
  template <std::unsigned_integral Number>
  static void read(const Json& json, Number& number) {
    if (json.is_number_unsigned()) number = json.get<Number>();
  }
  template <std::signed_integral Number>
  static void read(const Json& json, Number& number) {
    if (json.is_number_integer()) number = json.get<Number>();
  }
  // What was computed of the others is not read.
  template <std::integral Number>
  static void read(const Json&, const Number&) {}
  static void read(const Json&, std::string_view) {}
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

// The section of `parent` with this fact; nothing if it is absent, null or no object.
template <class Fact>
std::optional<Fact> fact_in(const Json& parent) {
  const Json& section = member(parent, facts::Section<Fact>::key);
  if (!section.is_object()) return std::nullopt;
  Fact fact{};
  FactReader reader{section};
  facts::Section<Fact>::describe(reader, fact);
  return fact;
}

}  // namespace oomrec::tools
