#include "tools/print/exception.h"

#include <fmt/format.h>

#include "tools/base/text.h"

namespace oomrec::tools::print {
namespace {

constexpr std::size_t kMostEntries = 10;  // of the custom metadata, without --full

std::string lines_of(std::string_view text, std::size_t indent) {
  std::string lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines +=
        fmt::format("{:{}}{}\n", "", indent, clip(printable(text.substr(at, end - at)), kColumns));
    at = end + 1;
  }
  return lines;
}

std::string value_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

}  // namespace

std::string exception_text(const bundles::Source& source, bool full, const Terminal& terminal) {
  std::string lines;
  const auto type = text_of(source.metadata, "exception_type");
  if (type) {
    const std::string message = text_of(source.metadata, "exception_message").value_or("");
    lines = fmt::format("  {}{}\n", terminal.paint(Colour::bold, printable(*type)),
                        message.empty() ? "" : ": " + wrap(printable(message), kColumns, 4));
    const auto traceback = text_of(source.metadata, "exception_traceback");
    if (full && traceback) lines += lines_of(*traceback, 4);
  }
  if (!source.reason().empty() && source.trigger() != Trigger::request)
    lines += fmt::format("  context: {}\n", clip(printable(source.reason()), kColumns));
  const Json entries = custom_metadata_json(source);
  std::size_t shown = 0;
  for (const auto& [key, value] : entries.items()) {
    if (!full && shown++ == kMostEntries) {
      lines += fmt::format("  … and {} more (--full)\n", entries.size() - kMostEntries);
      break;
    }
    lines += fmt::format("  {}: {}\n", clip(printable(key), kColumns / 2),
                         clip(printable(value_text(value)), kColumns));
  }
  return lines;
}

Json exception_json(const bundles::Source& source) {
  if (!text_of(source.metadata, "exception_type")) return nullptr;
  const auto text = [&](std::string_view name) -> Json {
    const auto found = text_of(source.metadata, fmt::format("exception_{}", name));
    return found ? Json(*found) : Json(nullptr);
  };
  return {{"type", text("type")},
          {"module", text("module")},
          {"message", text("message")},
          {"traceback", text("traceback")}};
}

Json custom_metadata_json(const bundles::Source& source) {
  const Json& entries = member(source.metadata, "custom_metadata");
  return entries.is_object() ? entries : Json::object();
}

}  // namespace oomrec::tools::print
