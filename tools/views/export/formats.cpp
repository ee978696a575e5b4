#include <algorithm>

#include "tools/views/export/format.h"

namespace oomrec::tools::views {

std::span<const Format> formats() {
  using enum What;
  // clang-format off
  static const Format kFormats[] = {
      // name         it can hold                    together  one figure  binary  by
      {"folded",      {holders},                     false,    true,       false,  write_folded},
      {"speedscope",  {holders},                     false,    false,      false,  write_speedscope},
      {"pprof",       {holders},                     false,    false,      true,   write_pprof},
      {"json",        {holders, timeline, events},   false,    false,      false,  write_json},
      {"csv",         {holders, timeline, events},   false,    false,      false,  write_csv},
      {"perfetto",    {timeline, holders},           true,     false,      true,   write_perfetto},
      {"memory_viz",  {holders, events},             true,     false,      true,   write_memory_viz},
      {"telemetry",   {timeline, events},            false,    false,      false,  write_telemetry},
  };
  // clang-format on
  return kFormats;
}

bool Exported::wants(What one) const {
  return std::find(what.begin(), what.end(), one) != what.end();
}

}  // namespace oomrec::tools::views
