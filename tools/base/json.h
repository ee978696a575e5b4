// Reads JSON from untrusted files, and prints it with its keys in the order of insertion.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "tools/base/json_value.h"

namespace oomrec::tools {

// The object in the file `name` of a bundle; an empty one if the file is missing, is a link, is not
// JSON or exceeds 64 MiB. Then `problem`, if given, says why: "is missing", "is a symbolic link".
Json read_json(const std::filesystem::path& bundle, std::string_view name,
               std::string* problem = nullptr);
// The value in the file, of any type; null where read_json() returns an empty object.
Json read_any_json(const std::filesystem::path& bundle, std::string_view name);

// A member of an object; nullopt if it is absent or has another type.
std::optional<std::string> text_of(const Json& object, std::string_view key);
std::optional<std::uint64_t> number_of(const Json& object, std::string_view key);
const Json& member(const Json& object, std::string_view key);  // null when absent

// null for an empty text, which means unknown.
Json text_or_null(std::string_view text);

// The text, on one line unless `indent` is given. Invalid UTF-8 is replaced, and terminal control
// characters are escaped.
std::string json_text(const Json& value, int indent = -1);

// Prints it and a newline on stdout.
void print_json(const Json& value);

}  // namespace oomrec::tools
