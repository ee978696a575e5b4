// The formats of `oomrec export`: a table, and one file for each.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/bundles/store/source.h"
#include "tools/recording/analysis/stacks.h"
#include "tools/views/export/output.h"
#include "tools/views/export/rows.h"

namespace oomrec::tools::views {

enum class Content : std::uint8_t { holders, timeline, events };
inline constexpr auto kContentNames =
    std::to_array<std::string_view>({"holders", "timeline", "events"});
constexpr std::string_view word_of(Content content) { return name_of(kContentNames, content); }

// The recording to export, and which parts of it.
struct ExportRequest {
  const bundles::Source& source;
  recording::Stacks& stacks;
  std::vector<Content> contents;
  Selection selection{};                  // of the holders
  recording::At at = recording::At::end;  // for formats with a single figure
  bool count_blocks = false;              // … which counts blocks instead of bytes

  const recording::Recording& recording() const { return *source.recording; }
  const recording::Locations& locations() const { return *source.locations; }
  bool wants(Content content) const;
};

struct Format {
  std::string_view name;
  std::string_view tool;          // that reads it, in the help; empty: a format of oomrec's own
  std::vector<Content> contents;  // the first one is the default
  bool combines;                  // by default, the file holds all of them
  bool single_figure;             // of a holder; --at and --count choose it
  Encoding encoding;
  void (*write)(const ExportRequest&, Output&);
};

std::span<const Format> formats();
std::vector<std::string> format_names();
std::vector<std::string_view> tools_with_formats();

// Throws Error with bad_input if no format has that name.
const Format& format_of(const std::string& name);

// The contents that `name` (one of kContentNames) requests; the default of the format if it is
// empty. Throws Error with bad_input if the format cannot hold them.
std::vector<Content> choose_contents(const Format& format, const std::string& name);

}  // namespace oomrec::tools::views
