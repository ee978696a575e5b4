// What a program says of the exception that lack of memory has raised, or of a bundle it asks for.
//
// The texts come from anybody: any bytes. In the JSON files they are strings, or, where they are to
// be JSON themselves, checked to be (json_check.h).
#pragma once

#include <cstddef>
#include <string_view>

#include "common/text/json_writer.h"

namespace oomrec::text {

// A text without data() is null in the JSON.
struct ExceptionTexts {
  std::string_view type, module, message, traceback;
  std::string_view context;   // without data(): the label, or the words of the request
  std::string_view metadata;  // a JSON object: custom_metadata
  std::string_view objects;   // a JSON value: objects.json
  std::string_view backend;   // "cuda" or "rocm", a text that stays; empty: it has not said
};

// Longer ones are cut, but metadata and objects left out.
inline constexpr std::size_t kMostNameBytes = 1024;  // of type, module and context
inline constexpr std::size_t kMostTextBytes = 64 * 1024;
inline constexpr std::size_t kMostObjectsBytes = 1024 * 1024;

inline constexpr const char* kObjectsFile = "objects.json";

inline void write_text(JsonWriter& json, std::string_view text) noexcept {
  text.data() == nullptr ? json.null() : json.string(text);
}

// custom_metadata: the program's object, or an empty one.
inline void write_custom_metadata(JsonWriter& json, std::string_view metadata) noexcept {
  json.raw(metadata.data() == nullptr ? "{}" : metadata);
}

}  // namespace oomrec::text
