// The formats that `oomrec export` writes: one table, one file each.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "tools/bundles/store/source.h"
#include "tools/recording/analysis/stacks.h"
#include "tools/views/export/output.h"
#include "tools/views/export/rows.h"

namespace oomrec::tools::views {

enum class What : std::uint8_t { holders, timeline, events };
inline constexpr auto kWhatNames =
    std::to_array<std::string_view>({"holders", "timeline", "events"});
constexpr std::string_view word_of(What what) { return name_of(kWhatNames, what); }

// What is exported, and how much of it.
struct Exported {
  const bundles::Source& source;
  recording::Stacks& stacks;
  std::vector<What> what;                 // those of the format that were asked for
  Selection selection{};                  // of the holders
  recording::At at = recording::At::end;  // formats of one figure: which
  bool count = false;                     // … and blocks instead of bytes

  const recording::Recording& recording() const { return *source.recording; }
  const recording::Places& places() const { return *source.places; }
  bool wants(What one) const;
};

struct Format {
  std::string_view name;
  std::vector<What> what;  // it can hold; the first one is the default
  bool all_at_once;        // it holds them together, unless one is asked for
  bool one_figure;         // --at and --count choose it
  bool binary;
  void (*write)(const Exported&, Output&);
};

std::span<const Format> formats();

void write_folded(const Exported&, Output&);
void write_speedscope(const Exported&, Output&);
void write_pprof(const Exported&, Output&);
void write_json(const Exported&, Output&);
void write_csv(const Exported&, Output&);
void write_perfetto(const Exported&, Output&);
void write_memory_viz(const Exported&, Output&);
void write_telemetry(const Exported&, Output&);

}  // namespace oomrec::tools::views
