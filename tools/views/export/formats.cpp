#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tools/base/error.h"
#include "tools/views/export/format.h"

namespace oomrec::tools::views {

// Each in a file of its own.
void write_folded(const ExportRequest&, Output&);
void write_speedscope(const ExportRequest&, Output&);
void write_pprof(const ExportRequest&, Output&);
void write_json(const ExportRequest&, Output&);
void write_csv(const ExportRequest&, Output&);
void write_perfetto(const ExportRequest&, Output&);
void write_memory_viz(const ExportRequest&, Output&);
void write_telemetry(const ExportRequest&, Output&);
void write_row(const ExportRequest&, Output&);

namespace {

bool can_hold(const Format& format, Content content) {
  return std::ranges::find(format.contents, content) != format.contents.end();
}

}  // namespace

std::span<const Format> formats() {
  using enum Content;
  using enum Encoding;
  // clang-format off
  static const Format kFormats[] = {
      // name         read by                              contents                       combines  single     encoding  written by
      {"folded",      "flamegraph.pl (folded)",            {holders},                     false,    true,      text,     write_folded},
      {"speedscope",  "speedscope",                        {holders},                     false,    false,     text,     write_speedscope},
      {"pprof",       "pprof",                             {holders},                     false,    false,     binary,   write_pprof},
      {"json",        "",                                  {holders, timeline, events},   false,    false,     text,     write_json},
      {"csv",         "",                                  {holders, timeline, events},   false,    false,     text,     write_csv},
      {"perfetto",    "Perfetto",                          {timeline, holders},           true,     false,     binary,   write_perfetto},
      {"memory_viz",  "PyTorch's memory_viz",              {holders, events},             true,     false,     binary,   write_memory_viz},
      {"telemetry",   "GPU Memory Profiler (telemetry)",   {timeline, events},            false,    false,     text,     write_telemetry},
      {"row",         "",                                  {holders},                     false,    false,     text,     write_row},
  };
  // clang-format on
  return kFormats;
}

std::vector<std::string> format_names() {
  std::vector<std::string> names;
  for (const Format& format : formats()) names.emplace_back(format.name);
  return names;
}

std::vector<std::string_view> tools_with_formats() {
  std::vector<std::string_view> tools;
  for (const Format& format : formats())
    if (!format.tool.empty()) tools.push_back(format.tool);
  return tools;
}

const Format& format_of(const std::string& name) {
  for (const Format& format : formats())
    if (format.name == name) return format;
  throw Error{Exit::bad_input, "no format was given",
              fmt::format("Give --format {}.", fmt::join(format_names(), "|"))};
}

std::vector<Content> choose_contents(const Format& format, const std::string& name) {
  if (name.empty())
    return format.combines ? format.contents : std::vector<Content>{format.contents.front()};
  const Content content =
      *value_named<Content>(kContentNames, name);  // the command checked the name
  if (can_hold(format, content)) return {content};
  std::vector<std::string_view> able, own;
  for (const Format& other : formats())
    if (can_hold(other, content)) able.push_back(other.name);
  for (const Content one : format.contents) own.push_back(word_of(one));
  throw Error{Exit::bad_input, fmt::format("the format {} cannot hold {}", format.name, name),
              fmt::format("It holds {}; formats that hold {}: {}.", fmt::join(own, " and "), name,
                          fmt::join(able, ", "))};
}

bool ExportRequest::wants(Content content) const {
  return std::ranges::find(contents, content) != contents.end();
}

}  // namespace oomrec::tools::views
