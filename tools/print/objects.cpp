#include "tools/print/objects.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "tools/base/text.h"

namespace oomrec::tools::print {
namespace {

constexpr const char* kObjectsFile = "objects.json";
constexpr std::size_t kShownObjects = 5;
constexpr std::size_t kShownFrames = 3;  // of the allocating stack
constexpr std::size_t kMostRows = 1000;

const Json& rows_of(const Json& object, std::string_view key) {
  static const Json none = Json::array();
  const Json& rows = member(object, key);
  return rows.is_array() ? rows : none;
}

std::string text_in(const Json& object, std::string_view key) {
  return text_of(object, key).value_or("");
}

bool flag_in(const Json& object, std::string_view key) {
  const Json& value = member(object, key);
  return value.is_boolean() && value.get<bool>();
}

// The elements that have the expected type, at most kMostRows.
Json elements_of_type(const Json& elements, bool (Json::*has_type)() const noexcept) {
  Json kept = Json::array();
  for (const Json& element : elements)
    if ((element.*has_type)() && kept.size() < kMostRows) kept.push_back(element);
  return kept;
}

Json referrer_json(const Json& referrer) {
  return {{"kind", text_in(referrer, "kind")},
          {"name", text_in(referrer, "name")},
          {"container", text_in(referrer, "container")},
          {"where", text_in(referrer, "where")},
          {"is_cycle", flag_in(referrer, "is_cycle")}};
}

Json object_json(const Json& object) {
  Json referrers = Json::array();
  for (const Json& referrer : rows_of(object, "referrers"))
    if (referrers.size() < kMostRows) referrers.push_back(referrer_json(referrer));
  return {{"bytes", number_of(object, "bytes").value_or(0)},
          {"type", text_in(object, "type")},
          {"shape", elements_of_type(rows_of(object, "shape"), &Json::is_number_unsigned)},
          {"dtype", text_in(object, "dtype")},
          {"device", text_in(object, "device")},
          {"views", number_of(object, "views").value_or(0)},
          {"address", number_of(object, "address").value_or(0)},
          {"stack", elements_of_type(rows_of(object, "stack"), &Json::is_string)},
          {"grad_fn", text_or_null(text_in(object, "grad_fn"))},
          {"referrers", std::move(referrers)}};
}

std::string shape_text(const Json& shape) {
  std::string text;
  for (const Json& count : shape)
    text += fmt::format("{}{}", text.empty() ? "" : "×", count.get<std::uint64_t>());
  return text.empty() ? "scalar" : text;
}

// "held by history[3] at train.py:12 train, in a cycle"
std::string referrer_text(const Json& referrer) {
  const std::string name = text_in(referrer, "name"), location = text_in(referrer, "where");
  return fmt::format("{}{}{}{}", name.empty() ? text_in(referrer, "container") : name,
                     location.empty() ? "" : " in ", location,
                     flag_in(referrer, "is_cycle") ? ", in a reference cycle" : "");
}

// Not clipped: the end of a path says most.
std::string line(std::string_view text) { return fmt::format("      {}\n", printable(text)); }

// The innermost Python frame ("train.py:6 make_batch"), below the library's own frames. 0 if there
// is none.
std::size_t first_python_frame(const Json& stack) {
  for (std::size_t i = 0; i < stack.size(); ++i)
    if (stack[i].get<std::string>().find(".py:") != std::string::npos) return i;
  return 0;
}

}  // namespace

Json python_objects_json(const bundles::Source& source) {
  if (source.bundle.empty()) return nullptr;
  const Json file = read_json(source.bundle, kObjectsFile);
  if (!member(file, "objects").is_array()) return nullptr;
  Json objects = Json::array();
  for (const Json& object : rows_of(file, "objects"))
    if (objects.size() < kMostRows) objects.push_back(object_json(object));
  return {{"objects", std::move(objects)},
          {"count", number_of(file, "count").value_or(0)},
          {"total_bytes", number_of(file, "total_bytes").value_or(0)},
          {"complete", flag_in(file, "complete")}};
}

std::string python_objects_text(const Json& objects, const Terminal& terminal) {
  std::string text;
  const Json& rows = rows_of(objects, "objects");
  for (std::size_t i = 0; i < std::min(rows.size(), kShownObjects); ++i) {
    const Json& row = rows[i];
    text += fmt::format(
        "  {:>10}  {}\n", size_text(row["bytes"].get<std::uint64_t>()),
        terminal.paint(Colour::bold,
                       clip(printable(fmt::format("{} {} {} on {}", text_in(row, "type"),
                                                  shape_text(row["shape"]), text_in(row, "dtype"),
                                                  text_in(row, "device"))),
                            kColumns - 14)));
    if (row["referrers"].empty()) text += line("no referrer found");
    for (const Json& referrer : row["referrers"])
      text += line("held by " + referrer_text(referrer));
    const Json& stack = row["stack"];
    const std::size_t first = first_python_frame(stack);
    for (std::size_t frame = first; frame < std::min(stack.size(), first + kShownFrames); ++frame)
      text += line((frame == first ? "made at " : "        ") + stack[frame].get<std::string>());
  }
  if (text.empty()) return text;
  const std::uint64_t count = number_of(objects, "count").value_or(0);
  if (count > kShownObjects)
    text += fmt::format("  {} in total hold {}\n", count_text(count),
                        size_text(number_of(objects, "total_bytes").value_or(0)));
  if (!flag_in(objects, "complete"))
    text += "  incomplete: not all objects were checked before the time limit\n";
  return text;
}

}  // namespace oomrec::tools::print
