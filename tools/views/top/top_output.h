// The live view's output: printed once or repeatedly, or on a screen.
#pragma once

#include <chrono>

#include "tools/base/json.h"
#include "tools/views/top/layout.h"
#include "tools/views/top/top_view.h"

namespace oomrec::tools::views {

enum class TopFormat { text, json, json_lines };

struct PrintOptions {
  TopFormat format = TopFormat::text;
  unsigned count = 1;  // 0: until the process ends
  unsigned rows = 20;
  std::chrono::steady_clock::duration interval{};
};

void print_snapshots(TopView& view, const PrintOptions& options);

// Returns when the user quits.
void show_on_screen(TopView& view, std::chrono::steady_clock::duration interval);

// The live view as JSON: docs/commands/top.md.

Json top_json(const Scene&);

}  // namespace oomrec::tools::views
