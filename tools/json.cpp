#include "tools/json.h"

#include <fmt/format.h>

#include <fstream>
#include <iterator>

#include "tools/text.h"

namespace oomrec::tools {
namespace {

constexpr std::uintmax_t kMostBytes = std::uintmax_t{64} << 20;

// Nested deeper than any file of ours: the parser is no recursion of ours, but the destructor is.
bool too_deep(int depth, Json::parse_event_t, Json&) {
  constexpr int kDeepest = 64;
  if (depth > kDeepest) throw std::length_error{"nested too deep"};
  return true;
}

}  // namespace

Json read_any_json(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error) ||
      std::filesystem::file_size(file, error) > kMostBytes) {
    return nullptr;
  }
  std::ifstream stream{file, std::ios::binary};
  const std::string text{std::istreambuf_iterator<char>{stream}, {}};
  try {
    Json value = Json::parse(text, too_deep, false);
    return value.is_discarded() ? Json(nullptr) : value;
  } catch (const std::exception&) {
    return nullptr;
  }
}

Json read_json(const std::filesystem::path& file) {
  Json value = read_any_json(file);
  return value.is_object() ? value : Json::object();
}

const Json& member(const Json& object, std::string_view key) {
  static const Json null;
  if (!object.is_object()) return null;
  const auto at = object.find(std::string{key});
  return at != object.end() ? *at : null;
}

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
  return with_commands_escaped(value.dump(indent, ' ', false, Json::error_handler_t::replace));
}

void print_json(const Json& value) { fmt::print("{}\n", json_text(value, 2)); }

}  // namespace oomrec::tools
