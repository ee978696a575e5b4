// Prints the schemas of all described facts, from which tests/integration/test_facts.py makes
// docs/schemas/facts.json and the tables of docs/json.md.
#include <concepts>
#include <cstdio>
#include <span>

#include "common/facts/account.h"
#include "common/facts/end.h"
#include "common/facts/verdict.h"
#include "tools/base/json_value.h"

namespace {

using namespace oomrec;
using namespace oomrec::facts;
using tools::Json;

// Words that schemas of several files share.
struct Vocabulary {
  std::string_view name;
  std::span<const std::string_view> words;
};
constexpr Vocabulary kVocabulary[] = {
    {"trigger", {kTriggerNames.begin() + 1, kTriggerNames.end()}},  // without `none`
    {"verdict_code", kVerdictNames},
    {"certainty", kCertaintyNames},
    {"mode", kModeNames},
    {"space_name", kSpaceNames},
};

Json enum_of(std::span<const std::string_view> names) {
  Json words = Json::array();
  for (const std::string_view word : names)
    if (!word.empty()) words.push_back(word);
  return {{"enum", words}};
}

struct Stack {};
Json schema_of(const Stack&) { return {{"$ref", "definitions.json#/$defs/stack"}}; }
Json schema_of(std::string_view) { return {{"type", "string"}}; }
Json schema_of(std::unsigned_integral auto) { return {{"type", "integer"}, {"minimum", 0}}; }
Json schema_of(std::signed_integral auto) { return {{"type", "integer"}}; }
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
Json or_null(Json schema) {
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

class Schema {
 public:
  void field(std::string_view key, const auto& value, std::string_view meaning) {
    add(key, schema_of(value), meaning);
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
    return {{"$ref", "#/$defs/" + std::string{Section<Fact>::key}}};
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

void add_requests(Json& schemas) {
  const session::Failure failure{};
  const session::Thread thread{};
  const session::Device device{};
  const Request<Stack> request{failure, thread, {}, 0, {}, {}};
  schemas["request"] = or_null(section_of(ShownRequest<Stack>{request, {}}));
  schemas["stored_request"] = or_null(section_of(StoredRequest<Stack>{request, false, device}));
}

}  // namespace

int main() {
  Json schemas = Json::object();
  for (const Vocabulary& shared : kVocabulary) schemas[shared.name] = enum_of(shared.words);
  schemas["certainty"]["enum"].push_back(nullptr);  // of a verdict that claims nothing
  add<Verdict>(schemas);
  add_requests(schemas);
  add<Aftershocks>(schemas);
  add<session::Thread>(schemas);
  add<session::Device>(schemas);
  add<session::DeviceEvidence>(schemas);
  add<Limit>(schemas);
  add<session::LimitReserve>(schemas);
  add<Crash<Stack>>(schemas);
  add<session::ChildDeath>(schemas);
  add<session::CgroupAccount>(schemas);
  std::puts(schemas.dump().c_str());
}
