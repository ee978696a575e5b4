// Facts: what the sections of a bundle say, each described once.
//
// Section<Fact>::describe(visitor, fact) names the members of a fact in the order of the file, each
// with its key and its meaning. Visitors write them (writer.h) and document them
// (tests/unit/common/facts/print_facts.cpp). A section has
//
//   key                   in the object that it is part of
//   layout                one member per line, or all on one line
//   is_known(fact)        only if the section may be null
//   describe(v, fact)     calls v.field(key, value, meaning), v.object(…), v.section(fact)
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "common/text/json_writer.h"

namespace oomrec::facts {

using text::JsonLayout;

template <class Fact>
struct Section;

// A value that is null unless it is known.
template <class Value>
struct OrNull {
  bool is_known;
  Value value;
};
template <class Value>
OrNull<Value> known_if(bool is_known, Value&& value) noexcept {
  return {is_known, std::forward<Value>(value)};
}

// A number that stands for a word: an index into `names`.
template <class Number, class Names>
struct Named {
  Number& value;
  const Names& names;
};
template <class Number, class Names>
Named<Number, Names> named(Number& value, const Names& names) noexcept {
  return {value, names};
}

// A number that is 0 for false.
template <class Number>
struct Flag {
  Number& value;
};
template <class Number>
Flag(Number&) -> Flag<Number>;

// A name from outside the recorder, in a fixed array without a NUL if it fills it; null if empty.
template <class Char, std::size_t N>
struct Name {
  Char (&text)[N];
  std::string_view view() const noexcept {
    const std::string_view whole{text, N};
    return whole.substr(0, whole.find('\0'));
  }
};
template <class Char, std::size_t N>
Name(Char (&)[N]) -> Name<Char, N>;

// Text; null if it is empty. `form`: the definition in docs/schemas that it follows, which also
// says whether it may be null.
template <class Text>
struct TextOrNull {
  Text& text;
  std::string_view form = {};
};
template <class Text>
TextOrNull(Text&) -> TextOrNull<Text>;
template <class Text>
TextOrNull(Text&, std::string_view) -> TextOrNull<Text>;

// Text of the recorder's own, NUL-terminated, and a list of it.
template <class Char, std::size_t N>
struct Sentence {
  Char (&text)[N];
};
template <class Char, std::size_t N>
Sentence(Char (&)[N]) -> Sentence<Char, N>;
template <class Char, std::size_t M, std::size_t N, class Count>
struct Sentences {
  Char (&texts)[M][N];
  Count& count;
};
template <class Char, std::size_t M, std::size_t N, class Count>
Sentences(Char (&)[M][N], Count&) -> Sentences<Char, M, N, Count>;

}  // namespace oomrec::facts
