#include "tools/sections/objects.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/base/text.h"

namespace oomrec::tools::sections {
namespace {

constexpr const char* kObjectsFile = "objects.json";
constexpr std::size_t kShownObjects = 5;
constexpr std::size_t kShownFrames = 3;  // of the allocating stack
constexpr std::size_t kMostRows = 1000;

struct PythonReferrer {
  std::string kind, name, container, where;  // empty: unknown
  bool is_cycle = false;
};

struct PythonObject {
  std::uint64_t bytes = 0, views = 0, address = 0;
  std::string type, dtype, device;
  std::string grad_fn;  // empty: none
  std::vector<std::uint64_t> shape;
  std::vector<std::string> stack;
  std::vector<PythonReferrer> referrers;
};

struct PythonObjects {
  std::vector<PythonObject> objects;  // the largest first
  std::uint64_t count = 0, total_bytes = 0;
  bool is_complete = false;  // all objects were checked in time
};

std::string text_in(const Json& object, std::string_view key) {
  return text_of(object, key).value_or("");
}

bool flag_in(const Json& object, std::string_view key) {
  const Json& value = member(object, key);
  return value.is_boolean() && value.get<bool>();
}

PythonReferrer referrer_in(const Json& referrer) {
  return {text_in(referrer, "kind"), text_in(referrer, "name"), text_in(referrer, "container"),
          text_in(referrer, "where"), flag_in(referrer, "is_cycle")};
}

PythonObject object_in(const Json& row) {
  PythonObject object{number_of(row, "bytes").value_or(0),
                      number_of(row, "views").value_or(0),
                      number_of(row, "address").value_or(0),
                      text_in(row, "type"),
                      text_in(row, "dtype"),
                      text_in(row, "device"),
                      text_in(row, "grad_fn"),
                      {},
                      {},
                      {}};
  for (const Json& extent : member(row, "shape"))
    if (extent.is_number_unsigned() && object.shape.size() < kMostRows)
      object.shape.push_back(extent.get<std::uint64_t>());
  for (const Json& frame : member(row, "stack"))
    if (frame.is_string() && object.stack.size() < kMostRows) object.stack.push_back(frame.text());
  for (const Json& referrer : member(row, "referrers"))
    if (object.referrers.size() < kMostRows) object.referrers.push_back(referrer_in(referrer));
  return object;
}

template <class Value>
Json array_of(const std::vector<Value>& values) {
  Json array = Json::array();
  for (const Value& value : values) array.push_back(value);
  return array;
}

Json object_json(const PythonObject& object) {
  Json referrers = Json::array();
  for (const PythonReferrer& referrer : object.referrers)
    referrers.push_back({{"kind", referrer.kind},
                         {"name", referrer.name},
                         {"container", referrer.container},
                         {"where", referrer.where},
                         {"is_cycle", referrer.is_cycle}});
  return {{"bytes", object.bytes},
          {"type", object.type},
          {"shape", array_of(object.shape)},
          {"dtype", object.dtype},
          {"device", object.device},
          {"views", object.views},
          {"address", object.address},
          {"stack", array_of(object.stack)},
          {"grad_fn", text_or_null(object.grad_fn)},
          {"referrers", std::move(referrers)}};
}

// "held by history[3] at train.py:12 train, in a cycle"
std::string referrer_text(const PythonReferrer& referrer) {
  return fmt::format("{}{}{}{}", referrer.name.empty() ? referrer.container : referrer.name,
                     referrer.where.empty() ? "" : " in ", referrer.where,
                     referrer.is_cycle ? ", in a reference cycle" : "");
}

// Not clipped: the end of a path says most.
std::string line(std::string_view text) { return fmt::format("      {}\n", printable(text)); }

// The innermost Python frame ("train.py:6 make_batch"), below the library's own frames. 0 if there
// is none.
std::size_t first_python_frame(const std::vector<std::string>& stack) {
  const auto first = std::ranges::find_if(
      stack, [](const std::string& frame) { return frame.find(".py:") != std::string::npos; });
  return first != stack.end() ? static_cast<std::size_t>(first - stack.begin()) : 0;
}

std::string object_text(const PythonObject& object, const Terminal& terminal) {
  const std::string shape =
      object.shape.empty() ? "scalar" : fmt::format("{}", fmt::join(object.shape, "×"));
  std::string text = fmt::format(
      "  {:>10}  {}\n", size_text(object.bytes),
      terminal.paint(Colour::bold, clip(printable(fmt::format("{} {} {} on {}", object.type, shape,
                                                              object.dtype, object.device)),
                                        kColumns - 14)));
  if (object.referrers.empty()) text += line("no referrer found");
  for (const PythonReferrer& referrer : object.referrers)
    text += line("held by " + referrer_text(referrer));
  const std::size_t first = first_python_frame(object.stack);
  const std::size_t end = std::min(object.stack.size(), first + kShownFrames);
  for (std::size_t frame = first; frame < end; ++frame)
    text += line((frame == first ? "made at " : "        ") + object.stack[frame]);
  return text;
}

// Nothing without the file.
std::optional<PythonObjects> python_objects(const bundles::Source& source) {
  if (source.bundle.empty()) return std::nullopt;
  const Json file = read_json(source.bundle, kObjectsFile);
  if (!member(file, "objects").is_array()) return std::nullopt;
  PythonObjects found{{},
                      number_of(file, "count").value_or(0),
                      number_of(file, "total_bytes").value_or(0),
                      flag_in(file, "complete")};
  for (const Json& object : member(file, "objects"))
    if (found.objects.size() < kMostRows) found.objects.push_back(object_in(object));
  return found;
}

}  // namespace

Json python_objects_json(const bundles::Source& source) {
  const auto found = python_objects(source);
  if (!found) return nullptr;
  Json objects = Json::array();
  for (const PythonObject& object : found->objects) objects.push_back(object_json(object));
  return {{"objects", std::move(objects)},
          {"count", found->count},
          {"total_bytes", found->total_bytes},
          {"complete", found->is_complete}};
}

std::string python_objects_text(const bundles::Source& source, const Terminal& terminal) {
  const auto found = python_objects(source);
  if (!found || found->objects.empty()) return {};
  std::string text;
  for (std::size_t i = 0; i < std::min(found->objects.size(), kShownObjects); ++i)
    text += object_text(found->objects[i], terminal);
  if (found->count > kShownObjects)
    text += fmt::format("  {} in total hold {}\n", count_text(found->count),
                        size_text(found->total_bytes));
  if (!found->is_complete)
    text += "  incomplete: not all objects were checked before the time limit\n";
  return text;
}

}  // namespace oomrec::tools::sections
