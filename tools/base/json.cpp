#include "tools/base/json.h"

#include <fmt/format.h>

#include <stdexcept>

#include "tools/base/foreign_file.h"
#include "tools/base/text.h"

namespace oomrec::tools {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20;

// A command reads up to ten files of a bundle, each an object.
constexpr std::size_t kObjectBytes = std::size_t{128} << 20;

// The value in the file. Throws std::runtime_error with the end of a sentence.
Json parse_file(const ForeignPath& file, std::size_t budget_bytes = JsonBudget::kBytes) {
  const std::string text = read_foreign_file(file, kMostBytes);
  JsonBudget budget{budget_bytes};
  Json value = parse_json(text, budget);
  if (value.is_discarded()) throw std::runtime_error{"is not JSON"};
  return value;
}

}  // namespace

Json read_any_json(const fs::path& bundle, std::string_view name) {
  try {
    return parse_file(ForeignPath::in(bundle, name));
  } catch (const std::exception&) {
    return nullptr;
  }
}

Json read_json(const fs::path& bundle, std::string_view name, std::string* problem) {
  try {
    Json value = parse_file(ForeignPath::in(bundle, name), kObjectBytes);
    if (!value.is_object()) throw std::runtime_error{"is not a JSON object"};
    return value;
  } catch (const std::exception& error) {
    if (problem != nullptr) *problem = error.what();
    return Json::object();
  }
}

const Json& member(const Json& object, std::string_view key) { return object[key]; }

std::optional<std::string> text_of(const Json& object, std::string_view key) {
  const Json& value = member(object, key);
  if (!value.is_string()) return std::nullopt;
  return value.get<std::string>();
}

std::optional<std::uint64_t> number_of(const Json& object, std::string_view key) {
  const Json& value = member(object, key);
  if (!value.is_number_unsigned()) return std::nullopt;
  return value.get<std::uint64_t>();
}

Json text_or_null(std::string_view text) {
  return text.empty() ? Json(nullptr) : Json(std::string{text});
}

std::string json_text(const Json& value, int indent) {
  return with_controls_escaped(value.dump(indent));
}

void print_json(const Json& value) { fmt::print("{}\n", json_text(value, 2)); }

}  // namespace oomrec::tools
