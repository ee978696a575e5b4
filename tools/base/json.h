// JSON, read from files that may hold anything and printed as the contracts have it: keys in the
// order they were written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace oomrec::tools {

using Json = nlohmann::ordered_json;

// The object in `file`; an empty one when there is none, or it is no JSON, or larger than 64 MiB.
// `problem`, if given, is then which of these: "is missing", "cannot be read: Permission denied".
Json read_json(const std::filesystem::path& file, std::string* problem = nullptr);
// The value in `file`, of whatever type; null where the other gives an empty object.
Json read_any_json(const std::filesystem::path& file);

// A member of an object by type; nothing when it is absent or of another type.
std::optional<std::string> text_of(const Json& object, std::string_view key);
std::optional<std::uint64_t> number_of(const Json& object, std::string_view key);
const Json& member(const Json& object, std::string_view key);  // null when absent

// null for an empty text: what is not known.
Json text_or_null(std::string_view text);

// As text, on one line unless `indent` is given. Bytes that are no UTF-8 are replaced, and what a
// terminal takes for a command is escaped.
std::string json_text(const Json& value, int indent = -1);

// Prints it, and a newline, on stdout.
void print_json(const Json& value);

}  // namespace oomrec::tools
