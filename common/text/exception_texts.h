// A program's texts about an exception for lack of memory, or about a bundle that it requests.
//
// The texts are untrusted and may contain any bytes. The JSON files have them as strings; those
// that must be JSON themselves are checked first (json_check.h).
#pragma once

#include <cstddef>
#include <string_view>

#include "common/text/json_writer.h"

namespace oomrec::text {

// A text without data() is null in the JSON.
struct ExceptionTexts {
  std::string_view type, module, message, traceback;
  std::string_view context;   // without data(): use the label, or the words of the request
  std::string_view metadata;  // a JSON object: custom_metadata
  std::string_view objects;   // a JSON value: objects.json
  std::string_view backend;   // "cuda" or "rocm", a static text; empty: not given
};

// Longer texts are cut; longer metadata and objects are left out.
inline constexpr std::size_t kMaxNameBytes = 1024;  // of type, module and context
inline constexpr std::size_t kMaxTextBytes = 64 * 1024;
inline constexpr std::size_t kMaxObjectsBytes = 1024 * 1024;

inline constexpr const char* kObjectsFile = "objects.json";

inline void write_text(JsonWriter& json, std::string_view text) noexcept {
  text.data() == nullptr ? json.null() : json.string(text);
}

// custom_metadata: the program's object, or an empty one.
inline void write_custom_metadata(JsonWriter& json, std::string_view metadata) noexcept {
  json.raw(metadata.data() == nullptr ? "{}" : metadata);
}

}  // namespace oomrec::text
