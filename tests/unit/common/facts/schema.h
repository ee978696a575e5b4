// A visitor of facts that makes their JSON schema: $defs of docs/schemas/facts.json, and files.
#pragma once

#include <concepts>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "common/facts/account.h"
#include "common/facts/describe.h"
#include "common/facts/verdict.h"
#include "tools/base/json_value.h"

namespace oomrec::facts {

using tools::Json;

// Words that schemas of several files share.
struct Vocabulary {
  std::string_view name;
  std::span<const std::string_view> words;
  bool may_be_null = false;
};
constexpr Vocabulary kVocabulary[] = {
    {"trigger", {kTriggerNames.begin() + 1, kTriggerNames.end()}},  // without `none`
    {"verdict_code", kVerdictNames},
    {"certainty", kCertaintyNames, true},  // of a verdict that claims nothing
    {"mode", kModeNames},
    {"space_name", kSpaceNames},
    {"relation", kRelationNames},
    {"reduction", kReductionNames, true},
};

inline Json enum_of(std::span<const std::string_view> names) {
  Json words = Json::array();
  for (const std::string_view word : names)
    if (!word.empty()) words.push_back(word);
  return {{"enum", words}};
}

struct Stack {};
inline Json schema_of(const Stack&) { return {{"$ref", "definitions.json#/$defs/stack"}}; }
struct CustomMetadata {};
inline Json schema_of(const CustomMetadata&) { return {{"type", "object"}}; }
inline Json list_of(Json element) { return {{"type", "array"}, {"items", std::move(element)}}; }
inline Json object_with(Json values) {
  return {{"type", "object"}, {"additionalProperties", std::move(values)}};
}
inline Json defined(std::string_view name) {
  return {{"$ref", "definitions.json#/$defs/" + std::string{name}}};
}
struct Arguments {};
inline Json schema_of(const Arguments&) { return list_of({{"type", "string"}}); }
struct Variables {};
inline Json schema_of(const Variables&) { return object_with({{"type", "string"}}); }
struct Sizes {};
inline Json schema_of(const Sizes&) { return object_with({{"type", "integer"}, {"minimum", 0}}); }
struct Pressure {};
inline Json schema_of(const Pressure&) {
  return object_with(object_with({{"type", Json::array({"number", "null"})}}));
}
struct KernelLimit {};
inline Json schema_of(const KernelLimit&) { return defined("kernel_limit"); }
struct ResourceLimits {};
inline Json schema_of(const ResourceLimits&) {
  Json limits = Json::object(), keys = Json::array();
  for (const ResourceLimit& limit : kResourceLimits) {
    limits[limit.key] = defined("soft_and_hard_limit");
    keys.push_back(limit.key);
  }
  return {{"type", "object"},
          {"properties", limits},
          {"required", keys},
          {"additionalProperties", false}};
}
struct Drivers {};
inline Json schema_of(const Drivers&) { return defined("drivers"); }
struct FileNames {};
inline Json schema_of(const FileNames&) { return list_of({{"type", "string"}}); }
// A fact in $defs, and a list of it.
template <class Fact>
struct Part {};
template <class Fact>
Json schema_of(const Part<Fact>&) {
  return {{"$ref", "#/$defs/" + std::string{Section<Fact>::key}}};
}
template <class Fact>
struct ListOf {};
template <class Fact>
Json schema_of(const ListOf<Fact>&) {
  return list_of(schema_of(Part<Fact>{}));
}
inline Json schema_of(std::string_view) { return {{"type", "string"}}; }
inline Json schema_of(std::unsigned_integral auto) { return {{"type", "integer"}, {"minimum", 0}}; }
inline Json schema_of(std::signed_integral auto) { return {{"type", "integer"}}; }
template <class Number>
Json schema_of(const Flag<Number>&) {
  return {{"type", "boolean"}};
}
template <class Char, std::size_t N>
Json schema_of(const Name<Char, N>&) {
  return {{"type", Json::array({"string", "null"})}};
}
template <class Number, class Names>
Json schema_of(const Named<Number, Names>& number) {
  for (const Vocabulary& shared : kVocabulary)
    if (shared.words.data() == number.names.data())
      return {{"$ref", "#/$defs/" + std::string{shared.name}}};
  return enum_of(number.names);
}
template <class Char, std::size_t N>
Json schema_of(const Sentence<Char, N>&) {
  return {{"type", "string"}};
}
template <class Char, std::size_t M, std::size_t N, class Count>
Json schema_of(const Sentences<Char, M, N, Count>&) {
  return {{"type", "array"}, {"items", {{"type", "string"}}}, {"maxItems", M}};
}
inline Json or_null(Json schema) {
  if (schema.contains("$ref"))
    return {{"anyOf", Json::array({std::move(schema), {{"type", "null"}}})}};
  if (schema.contains("enum"))
    schema["enum"].push_back(nullptr);
  else
    schema["type"] = Json::array({schema["type"], "null"});
  return schema;
}
template <class Value>
Json schema_of(const OrNull<Value>& value) {
  return or_null(schema_of(value.value));
}
template <class Value>
Json schema_of(const std::optional<Value>&) {
  return or_null(schema_of(Value{}));
}
template <class Text>
Json schema_of(const TextOrNull<Text>& text) {
  return text.form.empty() ? or_null(schema_of(std::string_view{})) : Json{{"$ref", text.form}};
}

class Schema {
 public:
  void field(std::string_view key, const auto& value, std::string_view meaning) {
    Json schema = schema_of(value);
    if constexpr (std::same_as<decltype(value), const unsigned&>)
      if (key == "schema_version") schema = {{"const", value}};
    add(key, std::move(schema), meaning);
  }
  void object(std::string_view key, JsonLayout, std::string_view meaning, const auto& members) {
    add(key, object_of(members), meaning);
  }
  void object_or_null(std::string_view key, bool, JsonLayout, std::string_view meaning,
                      const auto& members) {
    add(key, or_null(object_of(members)), meaning);
  }

  template <class Fact>
  void section(const Fact&) {
    add(Section<Fact>::key, reference_to<Fact>(), Section<Fact>::meaning);
  }
  template <class Fact>
  void section_or_null(const Fact&, bool) {
    add(Section<Fact>::key, or_null(reference_to<Fact>()), Section<Fact>::meaning);
  }

  static Json object_of(const auto& members) {
    Schema schema;
    members(schema);
    return {{"type", "object"},
            {"properties", schema.properties_},
            {"required", schema.keys_},
            {"additionalProperties", false}};
  }

 private:
  template <class Fact>
  static Json reference_to() {
    const bool is_stored = requires(const Fact& fact) { fact.has_device; };
    return {
        {"$ref", "#/$defs/" + std::string{is_stored ? "stored_" : ""}.append(Section<Fact>::key)}};
  }

  void add(std::string_view key, Json schema, std::string_view meaning) {
    schema["description"] = meaning;
    properties_[key] = std::move(schema);
    keys_.push_back(key);
  }

  Json properties_ = Json::object(), keys_ = Json::array();
};

template <class Fact>
Json section_of(const Fact& fact) {
  using Described = Section<Fact>;
  Json schema = Schema::object_of([&](auto& v) { Described::describe(v, fact); });
  if constexpr (requires { Described::is_known(fact); }) schema = or_null(schema);
  schema["description"] = Described::meaning;
  return schema;
}

template <class Fact>
void add(Json& schemas) {
  schemas[Section<Fact>::key] = section_of(Fact{});
}

}  // namespace oomrec::facts
