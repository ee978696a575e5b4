// Writes facts as JSON: to a JsonWriter, in the dying process, and to what has its functions
// (tools/base/fact_reader.h). Allocates nothing itself.
#pragma once

#include <concepts>
#include <optional>

#include "common/facts/describe.h"
#include "common/session/vocabulary.h"

namespace oomrec::facts {

template <class Json>
class Writer {
 public:
  explicit Writer(Json& json) noexcept : json_(json) {}

  void field(std::string_view key, const auto& value, std::string_view /*meaning*/) {
    json_.key(key);
    put(value);
  }
  void object(std::string_view key, JsonLayout layout, std::string_view /*meaning*/,
              const auto& members) {
    json_.key(key);
    put_object(layout, members);
  }
  void object_or_null(std::string_view key, bool is_known, JsonLayout layout,
                      std::string_view /*meaning*/, const auto& members) {
    json_.key(key);
    is_known ? put_object(layout, members) : json_.null();
  }

  void section(const auto& fact);
  void section_or_null(const auto& fact, bool is_known);

  void put_object(JsonLayout layout, const auto& members) {
    json_.begin_object(layout);
    members(*this);
    json_.end_object();
  }

 private:
  void put(std::unsigned_integral auto number) { json_.number(number); }
  void put(std::signed_integral auto number) { json_.signed_number(number); }
  void put(std::string_view text) { json_.string(text); }
  template <class Value>
  requires requires(const Value& value, Json& json) { value.write(json); }
  void put(const Value& value) { value.write(json_); }
  template <class Value>
  void put(const OrNull<Value>& value) {
    value.is_known ? put(value.value) : json_.null();
  }
  template <class Value>
  void put(const std::optional<Value>& value) {
    value ? put(*value) : json_.null();
  }
  template <class Text>
  void put(const TextOrNull<Text>& text) {
    json_.string_or_null(text.text);
  }
  template <class Number, class Names>
  void put(const Named<Number, Names>& number) {
    json_.string(name_of(number.names, number.value));
  }
  template <class Number>
  void put(const Flag<Number>& flag) {
    json_.boolean(flag.value != 0);
  }
  template <class Char, std::size_t N>
  void put(const Name<Char, N>& name) {
    json_.string_or_null(name.view());
  }
  template <class Char, std::size_t N>
  void put(const Sentence<Char, N>& sentence) {
    json_.string(sentence.text);
  }
  template <class Char, std::size_t M, std::size_t N, class Count>
  void put(const Sentences<Char, M, N, Count>& sentences) {
    json_.begin_array(JsonLayout::lines);
    for (std::size_t i = 0; i < sentences.count; ++i) json_.string(sentences.texts[i]);
    json_.end_array();
  }

  Json& json_;
};

// The fact as a value; null if it is not known.
template <class Json, class Fact>
void write(Json& json, const Fact& fact) {
  using Described = Section<Fact>;
  if constexpr (requires { Described::is_known(fact); })
    if (!Described::is_known(fact)) return json.null();
  Writer<Json>{json}.put_object(Described::layout,
                                [&](auto& visitor) { Described::describe(visitor, fact); });
}

// The same with its key, as a member of an object.
template <class Json, class Fact>
void write_section(Json& json, const Fact& fact) {
  json.key(Section<Fact>::key);
  write(json, fact);
}
// Null: the fact is not known.
template <class Json, class Fact>
void write_section(Json& json, const Fact* fact) {
  json.key(Section<Fact>::key);
  fact != nullptr ? write(json, *fact) : json.null();
}

template <class Json, class Fact>
void write_section(Json& json, const std::optional<Fact>& fact) {
  write_section(json, fact ? &*fact : nullptr);
}

template <class Json>
void Writer<Json>::section(const auto& fact) {
  write_section(json_, fact);
}
template <class Json>
void Writer<Json>::section_or_null(const auto& fact, bool is_known) {
  write_section(json_, is_known ? &fact : nullptr);
}

}  // namespace oomrec::facts
